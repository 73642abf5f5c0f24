package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// lstm is a language model that reads piece by piece.
var lstm = Kind{
	Name: "lstm", Task: "lstm", Data: Text, Defaults: Defaults{Steps: 2000, Batch: 32, LR: 4e-3, Average: 0.99, Context: 64, Layers: 1, Width: 256},
	Help: "an LSTM on a text or on a file of tokens",
	Row:  1024,
	Check: func(a *Arch) error {
		if a.LSTM == nil {
			return errors.New("the sizes under lstm are missing")
		}
		return a.LSTM.Check()
	},
	Make: func(env *tensor.Env, a *Arch) nn.Module { return model.NewLSTM(env, *a.LSTM) },
	Title: func(a *Arch) string {
		return fmt.Sprintf("LSTM of %d layers, width %d, embedding %d, vocabulary %d", a.LSTM.Layers, a.LSTM.Width, a.LSTM.Embedding, a.LSTM.Vocab)
	},
	Sizes: func(a *Arch) string {
		return fmt.Sprintf("lstm of vocabulary %d, embedding %d, layers %d, width %d", a.LSTM.Vocab, a.LSTM.Embedding, a.LSTM.Layers, a.LSTM.Width)
	},
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("embed.weight", 2) || !s.rank("rnn.weight_hh_l0", 2) {
			return Arch{}, false
		}
		return Arch{Kind: "lstm", LSTM: &model.LSTMConfig{Vocab: s["embed.weight"][0], Embedding: s["embed.weight"][1],
			Layers: s.count("rnn.weight_hh_l%d"), Width: s["rnn.weight_hh_l0"][1]}}, true
	},
	Reads: func(a *Arch) Writing {
		c := a.LSTM
		return Writing{Vocab: c.Vocab, Layers: c.Layers, Width: c.Width, Dropout: c.Dropout}
	},
	Write: func(a *Arch, w Writing) {
		c := model.LSTMConfig{}
		if a.LSTM != nil {
			c = *a.LSTM
		}
		if c.Vocab != w.Vocab || c.Width != w.Width {
			c.Embedding = min(w.Vocab, w.Width) // more than a direction for each token tells them apart no better
		}
		c.Vocab, c.Layers, c.Width, c.Dropout = w.Vocab, w.Layers, w.Width, w.Dropout
		a.LSTM = &c
	},
}
