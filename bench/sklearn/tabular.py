"""A table of used cars with missing values and categories, and how well scikit-learn foretells two of its columns.

    pip install scikit-learn pandas numpy
    python bench/sklearn/tabular.py train/testdata/cars

cars.csv is to learn from, cars_test.csv to be scored on, scikit-learn.json what scikit-learn comes to: its linear model and its MLP with
their defaults, on numbers that are normalised and categories of one input each, with missing values as the mean and an input that says so.
Prices follow a formula with products, thresholds and noise, so that the best R2 that there is, noise.r2, is known.
"""

import json
import pathlib
import sys

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

out = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(14)
n = 4000
makes = {"Adler": 1.4, "Borgward": 1.0, "Hansa": 0.7, "Wanderer": 1.1, "Stoewer": 0.85}
make = rng.choice(list(makes), n, p=[0.15, 0.3, 0.3, 0.15, 0.1])
fuel = rng.choice(["petrol", "diesel", "electric"], n, p=[0.5, 0.35, 0.15])
age = rng.uniform(0, 20, n).round(1)
km = (age * rng.gamma(6, 2500, n)).round(-2)
power = rng.normal(95, 30, n).clip(35, 260).round()
owners = 1 + rng.poisson(age / 8)
town = rng.choice(["north", "south", "east", "west"], n)
decay = np.where(fuel == "electric", 0.16, 0.09)
value = 26 * np.vectorize(makes.get)(make) * np.exp(-decay * age) * (power / 95) ** np.where(fuel == "diesel", 0.5, 1.1)
value *= np.where((km > 180000) & (fuel != "diesel"), 0.6, 1 - km / 900000) * np.where((age > 12) & (owners < 2), 1.5, 1)
clean = 1000 * value
price = (clean * np.exp(rng.normal(0, 0.08, n))).round()
quick = 2.2 * (12 - value) / 12 + 1.5 * ((fuel == "diesel") ^ (town == "north")) - 0.75
sold = np.where(rng.random(n) < 1 / (1 + np.exp(-2.5 * quick)), "yes", "no")
frame = pd.DataFrame(dict(make=make, fuel=fuel, age=age, km=km, power=power, owners=owners, town=town, price=price, sold=sold))
for column, share in dict(power=0.06, km=0.08, fuel=0.04, town=0.03).items():
    frame.loc[rng.random(n) < share, column] = np.nan
train, test = frame[:3000], frame[3000:]
out.mkdir(parents=True, exist_ok=True)
train.to_csv(out / "cars.csv", index=False)
test.to_csv(out / "cars_test.csv", index=False)


def encoded(target):
    numbers = [c for c in frame if c != target and frame[c].dtype.kind in "fi"]
    texts = [c for c in frame if c != target and c not in numbers]
    number = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    text = make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), OneHotEncoder(handle_unknown="ignore"))
    return ColumnTransformer([("number", number, numbers), ("text", text, texts)])


def score(model, target, of):
    model = make_pipeline(encoded(target), model)
    drop = lambda f: f.drop(columns=[target])
    y = train[target]
    scale = (0, 1) if of is accuracy_score else (y.mean(), y.std())
    if of is r2_score:
        y = (y - scale[0]) / scale[1]
    found = model.fit(drop(train), y).predict(drop(test))
    return of(test[target], found if of is accuracy_score else found * scale[1] + scale[0])


def mean(make, target, of):  # over seeds
    return float(np.mean([score(make(s), target, of) for s in range(5)]))


json.dump({
    "scikit-learn": sklearn.__version__,
    "price": {"metric": "r2", "linear": score(LinearRegression(), "price", r2_score), "mlp": mean(lambda s: MLPRegressor(random_state=s), "price", r2_score),
              "noise": float(r2_score(price[3000:], clean[3000:]))},
    "sold": {"metric": "accuracy", "linear": score(LogisticRegression(max_iter=1000), "sold", accuracy_score), "mlp": mean(lambda s: MLPClassifier(random_state=s), "sold", accuracy_score)},
}, open(out / "scikit-learn.json", "w"), indent=1)
