"""A table as pandas reads it, and as scikit-learn encodes it.

    python table_reference.py [--dir data/table/testdata]

pandas.json
    CSV: the file; Columns: what pandas.read_csv makes of it, null where a value is missing; Train: the rows that the encoders are
    fitted on; Names, Encoded: inputs of all rows, by StandardScaler, OneHotEncoder and MissingIndicator with the mean for missing numbers.
"""

import argparse
import io
import pathlib

import numpy as np
import pandas as pd
import sklearn
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import common

CSV = (
    "size,city,code,note,price,all missing,y\n"
    "1.5,Ulm,007,a,1e3,,0.5\n"
    "-2,Bonn,12,,  7,NA,1\n"
    "NaN,\"Ulm\",x1,\"b,c\",2.5e-3,,2\n"
    "+4,Kiel,NULL,a,-0,null,3\n"
    ".5,Bonn,7,n/a,1e-320,,-4\n"
    "6.,Ulm,12,\"say \"\"x\"\"\",123456789012345678,,5.25\n"
    ",Kiel,x1,a,0.1,#N/A,6\n"
    "8,Bonn,007,a,<NA>,None,7\n"
)
TRAIN = [0, 1, 2, 3, 4, 6, 7]


def column(s):
    if pd.api.types.is_numeric_dtype(s):
        return {"Name": s.name, "Numbers": [None if np.isnan(v) else float(v) for v in s.astype("float64")]}
    return {"Name": s.name, "Texts": [None if pd.isna(v) else v for v in s]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", default=common.ROOT / "data" / "table" / "testdata", type=pathlib.Path)
    args = parser.parse_args()
    table = pd.read_csv(io.StringIO(CSV))
    train = TRAIN + [5]  # every text is known
    names, parts = [], []
    for name in table.columns[:-1]:
        s = table[name]
        missing = s.isna().to_numpy(dtype=float)[:, None]
        if pd.api.types.is_numeric_dtype(s):
            v = s.to_numpy(dtype=float)[:, None]
            scaled = np.zeros_like(v)
            if np.isfinite(v[train]).any():
                scaled = StandardScaler().fit(v[train]).transform(v)
            parts.append(np.where(np.isnan(scaled), 0, scaled))
            names.append(name)
        else:
            known = s.dropna()
            enc = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(known.to_numpy(dtype=object)[:, None])
            parts.append(enc.transform(s.to_numpy(dtype=object)[:, None]))
            names += [f"{name}={c}" for c in enc.categories_[0]]
        if missing[train].any():
            parts.append(missing)
            names.append(f"{name} missing")
    common.save_json(args.dir / "pandas.json", {
        "versions": common.versions(pd, sklearn), "CSV": CSV, "Columns": [column(table[c]) for c in table.columns],
        "Train": sorted(train), "Names": names, "Encoded": np.concatenate(parts, 1).tolist()})


if __name__ == "__main__":
    main()
