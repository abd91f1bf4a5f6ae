from distributed import Client, LocalCluster

import agedp

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        readings = agedp.read("input/*.csv", as_dask=True)
        chains = agedp.estimate(agedp.quantize(readings))
    print(chains.spectral_gap().describe())
