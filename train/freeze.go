package train

import (
	"fmt"
	"path"
	"strings"

	"github.com/warpline-ml/warpline/nn"
)

// frozen are the patterns of Config.Freeze.
func (c *Config) frozen() []string {
	if c.Freeze == "" {
		return nil
	}
	return strings.Split(c.Freeze, ",")
}

// checkFreeze refuses what is no pattern.
func (c *Config) checkFreeze() error {
	for _, p := range c.frozen() {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fail("give paths of parameters or modules with *, ? and [a-z] in them, with commas between them", "--freeze %q: %q is no pattern", c.Freeze, p)
		}
	}
	return nil
}

// freeze makes constants of the parameters that the run is not to change.
func (r *run) freeze() error {
	var all []string
	learn := 0
	used := map[string]bool{}
	for name, p := range nn.Params(r.model) {
		all = append(all, name)
		for _, pattern := range r.frozen() {
			if nn.Matching(pattern)(name) {
				used[pattern] = true
				p.Freeze(true)
			}
		}
		if !p.Frozen() {
			learn++
		}
	}
	hint := "parameters are " + strings.Join(all, ", ")
	for _, pattern := range r.frozen() {
		if !used[pattern] {
			return fail(hint, "--freeze %s matches no parameter of %s", pattern, r.arch.Title())
		}
	}
	if learn == 0 {
		return fail("leave some to learn: "+hint, "--freeze %s matches every parameter of %s", r.Freeze, r.arch.Title())
	}
	return nil
}

// constants are the numbers in a model's parameters that do not learn.
func constants(m any) (n int) {
	for _, p := range nn.Params(m) {
		if p.Frozen() {
			n += p.Size()
		}
	}
	return n
}

// noteFrozen tells how much of the model learns, where that is not all.
func (s *session) noteFrozen() {
	if n, of := constants(s.Model), nn.Count(s.Model); n > 0 {
		s.Watch.Note(fmt.Sprintf("%d of %d parameters learn, and %d are frozen", of-n, of, n))
	}
}
