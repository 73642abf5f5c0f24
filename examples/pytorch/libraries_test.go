package pytorch

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/augment"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// "Other libraries"
func TestTransforms(t *testing.T) {
	env := fresh(t, "cpu")
	pictures, _ := digits.Split(8, 4)
	darker := func(p *augment.Picture, r *rand.Rand) *augment.Picture { return p.Brightness(1 - r.Float64()/2) }
	b := &data.Pair{Turn: data.Turn{Env: env}, X: env.Rand(4, 1, 28, 28), Y: env.RandInt(0, 10, 4)}

	// `torchvision.transforms.Compose([…])` | of a set; drawn for each sample and epoch, whatever workers there are
	augmented, err := augment.Apply(pictures, augment.RandomCrop(28, 28, 4), augment.RandomFlip(0.5))

	use(augmented, err)
	// `torchvision.transforms.RandomCrop(28, padding=4)`, `torchvision.transforms.CenterCrop(24)`, `torchvision.transforms.Resize((32, 32))`
	use(augment.RandomCrop(28, 28, 4), augment.CenterCrop(24, 24), augment.Resize(32, 32))
	// `torchvision.transforms.RandomResizedCrop(28)`
	use(augment.RandomResizedCrop(28, 28, [2]float64{0.08, 1}, [2]float64{3. / 4, 4. / 3}))
	// `torchvision.transforms.RandomHorizontalFlip()`, `torchvision.transforms.RandomVerticalFlip()`, `torchvision.transforms.RandomRotation(10)`
	use(augment.RandomFlip(0.5), augment.RandomFlipVertical(0.5), augment.RandomRotation(10))
	// `torchvision.transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)`, `torchvision.transforms.RandAugment()`
	use(augment.ColorJitter(augment.Jitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1}), augment.RandAugment(2, 9))
	// `torchvision.transforms.Normalize((0.13,), (0.31,))` | the last one; readers give float32 from 0 to 1 already
	use(augment.Normalize([]float32{0.13}, []float32{0.31}))
	// `torchvision.transforms.Lambda(darker)` | an `augment.Transform`; of samples that are no pictures `data.Map`
	use(augment.Transform(darker))
	// `torchvision.transforms.v2.MixUp(num_classes=10, alpha=0.2)` | in the loop; `nn.CrossEntropy` takes the shares of classes
	x, y := augment.MixUp(b, 10, 0.2)

	use(x, y)
	// `torchvision.transforms.v2.CutMix(num_classes=10)` | in the loop
	cut, shares := augment.CutMix(b, 10, 1)

	use(cut, shares)
}

// inFolderOfTables goes to a folder with tables.
func inFolderOfTables(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"cars.csv": "price,age,make\n10,1,a\n20,2,b\n30,3,\n40,,a\n", "cars.tsv": "price\tage\n10\t1\n", "cars.jsonl": `{"price": 10, "age": 1}` + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// "Other libraries"
func TestTables(t *testing.T) {
	inFolderOfTables(t)

	// `pandas.read_csv("cars.csv")` | columns are numbers or texts, by their cells; what is missing as in pandas
	cars, err := table.Open("cars.csv", table.Config{})

	use(cars, err)
	// `pandas.read_csv("cars.tsv", sep="\t")` | by the name, or `Comma`
	tabs, err := table.Open("cars.tsv", table.Config{})

	use(tabs, err)
	// `pandas.read_json("cars.jsonl", lines=True)` | by the name
	lines, err := table.Open("cars.jsonl", table.Config{})

	use(lines, err)
	// `sklearn.model_selection.train_test_split(cars, test_size=0.2)` | places of rows; with `stratify` it is `SplitBy`
	rows, rest, err := cars.Split(0.75, 1)

	use(rows, rest, err)
	// `sklearn.preprocessing.StandardScaler()`, `sklearn.preprocessing.OneHotEncoder()`, `pandas.get_dummies(cars)` | all at once, learnt
	// from the training rows; missing values have an input of their own; it is JSON, to go with the model
	enc, err := table.Fit(cars, rows, table.Encoding{Target: "price", Unknown: table.Other})

	use(enc, err)
	// `sklearn.preprocessing.StandardScaler.inverse_transform(y)` | of the target
	use(enc.Value(0.5))

	// `data.TensorDataset(x, y)` of a table
	learn, err := enc.Source(cars, rows)

	use(learn, err)
}

// "Other libraries"
func TestMetrics(t *testing.T) {
	env := fresh(t, "cpu")
	logits, labels := env.Randn(20, 3), tensor.From(env, []int64{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1}, 20)
	y, target := env.Randn(20, 1), env.Randn(20, 1)
	loss := nn.CrossEntropy(logits, labels)

	// `torchmetrics.MetricCollection([…])` | by name: accuracy, precision, recall, f1, ece, auc …; `Numbers` of a regression
	m := metric.Meters{}
	m.Classes(logits, labels)

	use(m.Values())

	// `torchmetrics.MeanMetric()` | adds up without waiting; `Value`, `Count`, `Merge`, `Reset`
	mean := metric.Mean{}
	mean.Add(loss, 20)

	// `torchmetrics.Accuracy(task="multiclass", num_classes=3)`, `torchmetrics.Accuracy(task="multiclass", num_classes=3, top_k=2)` | how many
	// are right: `AddSum` of a `metric.Mean`; of a whole set `metric.Evaluate`
	use(metric.Correct(logits, labels), metric.CorrectTopK(logits, labels, 2))
	// `torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3)` | `Counts`
	confusion := metric.NewConfusion(env, 3)
	confusion.Add(logits, labels)

	// `torchmetrics.Precision(…)`, `torchmetrics.Recall(…)`, `torchmetrics.F1Score(…)`, `torchmetrics.JaccardIndex(…)` | also `metric.Micro`,
	// `metric.Weighted`; for each class `confusion.F1()`
	use(confusion.Average(metric.Macro).Precision, confusion.Average(metric.Macro).Recall, confusion.Average(metric.Macro).F1, confusion.Average(metric.Macro).IoU)
	// `torchmetrics.AUROC(task="multiclass", num_classes=3)` | `AUC`; `AUCPairs` of classes against each other
	roc := metric.ROC{}
	roc.Add(logits.Softmax(-1), labels)

	// `torchmetrics.CalibrationError(task="multiclass", num_classes=3)` | `Error`, `Bins`
	calibration := metric.NewCalibration(env, 15)
	calibration.Add(logits.Softmax(-1), labels)

	// `torchmetrics.MeanAbsoluteError()`, `torchmetrics.MeanSquaredError()`, `torchmetrics.R2Score()` | all by `Value`
	regression := metric.Regression{}
	regression.Add(y, target)

	// `torchmetrics.text.Perplexity()`
	perplexity := metric.Perplexity{}
	perplexity.Add(loss, 20)

	if v := perplexity.Value(); !(v > 1) {
		t.Errorf("perplexity %v", v)
	}
}

// "Other libraries"
func TestFits(t *testing.T) {
	env := fresh(t, "cpu")
	learn, held := data.InMemory(make([]float32, 16), []int{4}, []int64{0, 1, 2, 0}), data.InMemory(make([]float32, 8), []int{4}, []int64{0, 1})
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3})
	loop := train.Loop{Env: env, Model: model, Optimizer: opt, Data: data.Config{Size: 2, Shuffle: true}, Epochs: 2, Patience: 3}
	step := func(b *data.Pair, m *metric.Meters) *tensor.Tensor {
		y := model.Forward(b.X)
		m.Classes(y, b.Y)
		return nn.CrossEntropy(y, b.Y)
	}

	// `lightning.Trainer(max_epochs=2)`, `transformers.Trainer(model, args, …)` | epochs, scores, early stopping, best weights, checkpoints,
	// TensorBoard, Ctrl-C: [guide](guide.md#or-leave-the-loop-to-trainfit)
	result, err := train.Fit(context.Background(), loop, learn, held, step)

	use(result, err)
	// `lightning.pytorch.callbacks.EarlyStopping(patience=3)`, `lightning.pytorch.callbacks.ModelCheckpoint()`
	use(train.Loop{Patience: 3}, train.Loop{Keep: train.KeepBest, Out: "run", Resume: true})
}

// "Other libraries"
func TestAdapting(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.Sequential{nn.NewLinear(env, 4, 4), nn.ReLU{}, nn.NewLinear(env, 4, 2)}
	q := env.Randn(1, 2, 3, 8)

	// `peft.get_peft_model(model, LoraConfig(r=8))` | of linear layers, by paths; the rest of the model is frozen
	nn.AddLoRA(model, nn.LoRAConfig{Rank: 8, Match: func(path string) bool { return path == "0" }})
	// `peft.PeftModel.merge_and_unload()` | before the model is saved
	nn.MergeLoRA(model)
	// `torchtune.modules.RotaryPositionalEmbeddings(8)` | values [..., positions, width]
	use(nn.Rotary{}.Forward(q))
	// `transformers.models.bloom.modeling_bloom.build_alibi_tensor(…)` | what `tensor.Mask` adds to scores
	use(nn.ALiBi{Heads: 2}.Bias(env, 3, 3))
}
