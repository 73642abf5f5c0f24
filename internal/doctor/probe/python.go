package probe

import (
	"context"
	"time"

	"github.com/warpline-ml/warpline/internal/pyenv"
)

// pythonLimit is how long the search for environments may take: file systems over a network can be slow. It takes some
// milliseconds for each.
const pythonLimit = 3 * time.Second

// python looks for environments with PyTorch, JAX and TensorFlow.
func (p *prober) python() {
	ctx, cancel := context.WithTimeout(context.Background(), pythonLimit)
	defer cancel()
	search := pyenv.Here()
	search.Root = p.Root
	if p.Getenv != nil {
		search.Getenv = p.Getenv
	}
	p.facts.Python = search.Find(ctx)
	p.facts.Notes = append(p.facts.Notes, p.facts.Python.Notes...)
}
