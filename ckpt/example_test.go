package ckpt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func ExampleSaveModel() {
	env := tensor.Best()
	dir, err := os.MkdirTemp("", "weights")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")

	model := nn.Sequential{nn.NewLinear(env, 4, 8), nn.ReLU{}, nn.NewLinear(env, 8, 2)}
	if err := ckpt.SaveModel(path, model); err != nil {
		log.Fatal(err)
	}
	other := nn.Sequential{nn.NewLinear(env, 4, 8), nn.ReLU{}, nn.NewLinear(env, 8, 2)}
	if err := ckpt.LoadModel(path, other); err != nil {
		log.Fatal(err)
	}

	x := env.Ones(1, 4)
	fmt.Println(model.Forward(x).Eq(other.Forward(x)).All())
	// Output: true  bool[]
}

func ExampleSave() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	// run trains up to a step, from the newest checkpoint if there is one.
	run := func(steps int) *nn.Linear {
		env := tensor.Best().Seed(7)
		model := nn.NewLinear(env, 1, 2)
		opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 0.1})
		set := data.InMemory([]float32{1, 2, 3, 4}, []int{1}, []int64{0, 0, 1, 1})

		s := &ckpt.State{Model: model, Optimizer: opt, Draws: env.Draws()}
		if _, _, err := ckpt.Latest(dir, s); err != nil && !errors.Is(err, ckpt.ErrNone) {
			log.Fatal(err)
		}
		env.SetDraws(s.Draws)
		c := data.Config{Size: 2, Shuffle: true, Steps: steps, Done: s.Step, Epoch: s.Loader.Epoch, Skip: s.Loader.Batch}
		for b, err := range data.Batches(env, set, c) {
			if err != nil {
				log.Fatal(err)
			}
			nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
			opt.Step()
			s.Step, s.Loader, s.Draws = s.Step+1, b.Position(), env.Draws()
		}
		if _, err := ckpt.Save(dir, s); err != nil {
			log.Fatal(err)
		}
		return model
	}

	run(3)
	run(7)
	resumed := run(7) // which has nothing left to do
	os.RemoveAll(dir)
	whole := run(7)
	fmt.Println(resumed.Weight.Eq(whole.Weight).All())
	// Output: true  bool[]
}

// Prediction from a run's checkpoint.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	env := tensor.Best()
	trained := nn.NewLinear(env, 2, 3)
	opt := optim.NewAdamW(nn.Params(trained), optim.AdamWConfig{})
	if _, err := ckpt.Save(dir, &ckpt.State{Step: 7, Model: trained, Optimizer: opt, Extra: json.RawMessage(`{"hidden": 3}`)}); err != nil {
		log.Fatal(err)
	}

	c, err := ckpt.Open(dir) // the newest checkpoint of a run
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var about struct{ Hidden int }
	if err := json.Unmarshal(c.Extra(), &about); err != nil {
		log.Fatal(err)
	}
	model := nn.NewLinear(env, 2, about.Hidden)
	if err := c.Model(model); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Step(), model.Weight.Shape())
	// Output: 7 [3 2]
}
