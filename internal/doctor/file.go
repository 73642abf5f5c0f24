package doctor

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/pyenv"
)

// largest is more than facts take.
const largest = 16 << 20

// Read reads facts from a file of them.
func Read(name string, r io.Reader) (*Facts, error) {
	raw, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err != nil {
		return nil, advice.Failf("give a file that warpline doctor --save wrote", "%s cannot be read: %v", name, err)
	}
	if len(raw) > largest {
		return nil, advice.Failf("give a file that warpline doctor --save wrote", "%s has more than %d bytes, which no facts take", name, largest)
	}
	var f Facts
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, advice.Failf("give a file that warpline doctor --save wrote", "%s has no facts: %v", name, err)
	}
	if f.Version < 1 {
		return nil, advice.Failf("give a file that warpline doctor --save wrote", "%s has no facts: it names no version of them", name)
	}
	if f.Version > Version {
		return nil, advice.Failf("judge it with the warpline that wrote it, or a newer one", "%s has facts of version %d, and this program knows none after %d", name, f.Version, Version)
	}
	if f.Python != nil { // what is null in a list stands for nothing
		f.Python.Environments = slices.DeleteFunc(f.Python.Environments, func(e *pyenv.Environment) bool { return e == nil })
	}
	return &f, nil
}

// Write keeps facts in a file.
func (f *Facts) Write(path string) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", " ")
		return out.Encode(f)
	})
}
