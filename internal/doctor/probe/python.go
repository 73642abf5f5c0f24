package probe

import (
	"context"
	"time"

	"github.com/warpline-ml/warpline/internal/pyenv"
)

// pythonLimit is how long the search for environments may take: file systems over a network can be slow. It takes some
// milliseconds for each. One that does not answer at all is given up behind twice that.
const pythonLimit = 700 * time.Millisecond

// python looks for environments with PyTorch, JAX and TensorFlow.
func (p *prober) python() {
	ctx, cancel := context.WithTimeout(context.Background(), pythonLimit)
	defer cancel()
	search := pyenv.Here()
	search.Root = p.Root
	if p.Getenv != nil {
		search.Getenv = p.Getenv
	}
	search.Interpreter = p.interpreter
	late := &pyenv.Found{OS: search.OS, Notes: []string{"Python's environments: a file system does not answer"}}
	p.facts.Python = inTime(2*pythonLimit, late, func() *pyenv.Found { return search.Find(ctx) })
	p.facts.Notes = append(p.facts.Notes, p.facts.Python.Notes...)
}
