// Command gru learns to write as Shakespeare did, character by character, from the beginning of Coriolanus; gru.py is the same in
// PyTorch. The loss on what is held out is 1.62 here and there.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/text"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

func main() {
	env := tensor.Best().Seed(1)
	letters, ids, err := text.Open("examples/gru/shakespeare.txt", text.Characters)
	must(ids, err)
	learn := must(ids.Part(0, ids.Len()*9/10).Windows(64))
	held := must(ids.Part(ids.Len()*9/10, ids.Len()).Blocks(64))

	embed, gru := nn.NewEmbedding(env, letters.Size(), 32), nn.NewGRU(env, 32, 128, nn.RecurrentConfig{BatchFirst: true})
	head := nn.NewLinear(env, 128, letters.Size())
	model := nn.Sequential{embed, gru, head}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 5e-3, Clip: 1})
	loop := train.Loop{Env: env, Model: model, Optimizer: opt, Data: data.Config{Size: 32, Draw: true}, Steps: 400, EvalEvery: 400}
	result := must(train.Fit(context.Background(), loop, learn, held, func(b *tokens.Batch, _ *metric.Meters) *tensor.Tensor {
		return nn.CrossEntropy(model.Forward(b.Tokens), b.Targets)
	}))
	fmt.Printf("loss %.2f on what is held out\n", *result.ValLoss)

	e := env.NoGrad().Eval()
	token, state := tensor.From(e, []int64{must(ids.ID(0))}, 1, 1), nn.RecurrentState{}
	for range 200 {
		y, after := gru.Run(embed.Forward(token), state, nil)
		logits := head.Forward(y)
		token, state = logits.Sub(e.Rand(logits.Shape()...).Log().Neg().Log()).ArgMax(-1), after // Gumbel's trick draws by the softmax
		fmt.Print(must(letters.Decode(tensor.Data[int64](token)...)))
	}
	fmt.Println()
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
