package train

import (
	"fmt"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/zoo"
)

// newDrawn opens the set of a task that learns from what is drawn, and from nothing else.
func newDrawn(c *Config) (*job, error) {
	if c.Data != "" {
		return nil, fail("leave --data out", "%s learns from what is drawn, and not from %s", c.Task, c.Data)
	}
	j := &job{arch: zoo.Begun(c.Task)}
	if c.Init != "" {
		a, err := readArch(c.Init, j.arch)
		if err != nil {
			return nil, err
		}
		if a.Sizes() != j.arch.Sizes() {
			return nil, fail(fmt.Sprintf("train %s with it", a.Of().Task), "%s is %s, and %s trains %s", c.Init, a.Sizes(), c.Task, j.arch.Sizes())
		}
		j.arch, j.weights = a.Arch, a.weights
	}
	train, test := dataset.Drawn(c.Task)
	j.train, j.learnt = dataset.Pairs{Source: train}, train.Len()
	j.wrap = data.Config{Shuffle: c.Order == "random", Wrap: c.Order == "sequential", DropLast: c.Order == "random"}
	j.perEpoch = func(batch int) int { return max(j.wholeBatches(batch), 1) }
	if c.Order == "random" {
		j.test, j.held = dataset.Pairs{Source: test}, test.Len()
	}
	if c.Batch > train.Len() && c.Order == "random" {
		return nil, fail(fmt.Sprintf("give --batch %d or less", train.Len()), "--batch %d is more than the %d samples there are to learn from", c.Batch, train.Len())
	}
	return j, nil
}

// drawn opens what is drawn to score.
func (m *opened) drawn(c *EvalConfig, p *part) (dataset.Source, error) {
	if c.Data != "" || c.Tokens != "" {
		return nil, fail("leave --data and --tokens out", "%s is scored on what is drawn", m.from)
	}
	_, test := dataset.Drawn(m.arch.Of().Task)
	if c.Skip >= test.Len() {
		return nil, fail("skip fewer", "--skip %d leaves nothing of %d samples", c.Skip, test.Len())
	}
	p.test = true
	return dataset.Pairs{Source: data.Subset(test, c.Skip, test.Len())}, nil
}

// askDrawn reads a picture for a model of pictures, and refuses others.
func (m *opened) askDrawn(c *PredictConfig, path string) ([]asked, error) {
	if m.arch.ImageConfig == nil {
		return nil, fail("score it with eval", "%s takes samples that are drawn, and no files", m.from)
	}
	return m.askPicture(c, path)
}
