package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// L12 compares what three settings hold: token positions, and scores of attention between all pairs of them.
func L12(env *tensor.Env, n Numbers, w io.Writer) error {
	// An attention with two heads of width 8.
	const heads, width = 2, 8
	// Positions have a vector each; scores are made for each pair of positions, of each head.
	sizes := func(batch, tokens int) (positions, scores int64) {
		q := env.Zeros(batch, heads, tokens, width)
		return int64(batch * tokens), q.MatMul(q.Transpose(-2, -1)).Bytes()
	}
	p, s := sizes(n["batch"], n["tokens"])
	for _, c := range []struct {
		name          string
		batch, tokens int
	}{
		// Half the batch halves both.
		{"half the batch ", n["batch"] / 2, n["tokens"]},
		// Half the length halves positions, and leaves a quarter of the scores.
		{"half the length", n["batch"], n["tokens"] / 2},
	} {
		positions, scores := sizes(c.batch, c.tokens)
		fmt.Fprintf(w, "%s: %d %% of the positions, %d %% of the scores\n", c.name, 100*positions/p, 100*scores/s)
	}
	return nil
}
