package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// GAN trains two networks against each other with two optimizers. The generator's Backward names its own parameters, so
// that none of its gradient stays in the discriminator.
func GAN(env *tensor.Env, steps int, w io.Writer) error {
	generator, critic := mlp(env, 2, 16, 4), mlp(env, 4, 16, 1)
	optG := optim.NewAdam(nn.Params(generator), optim.AdamWConfig{LR: 1e-3})
	optC := optim.NewAdam(nn.Params(critic), optim.AdamWConfig{LR: 1e-3})
	stray := 0
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		fake := generator.Forward(b.Env.Randn(10, 2))

		lossC := squares(critic.Forward(b.X), 1).Add(squares(critic.Forward(fake.Detach()), 0))
		lossC.Backward()
		optC.Step()

		lossG := squares(critic.Forward(fake), 1)
		lossG.Backward(nn.Params(generator))
		optG.Step()
		for _, p := range nn.Params(critic) {
			if p.Grad() != nil {
				stray++
			}
		}
	}
	fmt.Fprintf(w, "%d gradients left in the critic by the generator's step\n", stray)
	return nil
}
