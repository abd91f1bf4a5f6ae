"""The statement of a release: its content, its Markdown and its data package."""
