package train

import (
	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// checkLoRA refuses what small matrices cannot have beside them.
func (c *Config) checkLoRA() error {
	if c.LoRA > 0 && c.Freeze != "" {
		return fail("leave --freeze out", "--lora %d freezes all of the model but the small matrices, and --freeze %s a part", c.LoRA, c.Freeze)
	}
	return nil
}

// adapt freezes a model and gives it the small matrices of the run, if it has some.
func (c *Config) adapt(env *tensor.Env, m any) {
	if c.LoRA > 0 {
		nn.AddLoRA(m, nn.LoRAConfig{Rank: c.LoRA, Env: env})
	}
}

// lowRank refuses a rank that no product of the model has.
func (r *run) lowRank() error {
	most := 0
	for _, p := range nn.Params(r.model) {
		if p.Rank() == 2 {
			most = max(most, min(p.Dim(0), p.Dim(1)))
		}
	}
	if r.LoRA > 0 && most == 0 {
		return fail("leave --lora out", "--lora %d adapts linear layers, and %s has none", r.LoRA, r.arch.Title())
	}
	if r.LoRA > most {
		return fail("give a rank far below that, such as 8", "--lora %d is above the rank of every matrix of %s, which is %d at most", r.LoRA, r.arch.Title(), most)
	}
	return nil
}

// merge puts what small matrices have learned into the weights of the model that the run leaves, as others know it. The run is over then.
func (r *run) merge(m nn.Module) nn.Module {
	if r.LoRA > 0 {
		nn.MergeLoRA(m)
		r.merged = m
	}
	return m
}

// mergedCopy is a model as others know it, while the run goes on.
func mergedCopy(m any) any {
	m = nn.Clone(m)
	nn.MergeLoRA(m)
	return m
}

// outcome is the model that the run, which is over, leaves.
func (r *run) outcome() nn.Module {
	if r.merged != nil {
		return r.merged
	}
	return r.merge(r.session.outcome().(nn.Module))
}

// restore gives a model the weights of a plain one in a file: the small matrices then add nothing to them.
func (r *run) restore(path string, m any) error {
	if r.LoRA == 0 {
		return ckpt.LoadModel(path, m)
	}
	nn.MergeLoRA(m)
	if err := ckpt.LoadModel(path, m); err != nil {
		return err
	}
	defer r.env.SetDraws(r.env.Draws()) // the steps to come draw as they would have done
	r.adapt(r.env, m)
	return nil
}
