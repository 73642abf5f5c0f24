package train

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// notes is a Watcher of notes.
type notes struct {
	silent
	list []string
}

func (n *notes) Note(text string) { n.list = append(n.list, text) }

// TestNeverIsToldOnce: a parameter that is not part of the loss is told at the first step that knows of it, whichever that
// is.
func TestNeverIsToldOnce(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	watch := &notes{}
	r := &session{Loop: Loop{Watch: watch}, env: env, told: map[string]bool{}}
	for i, never := range [][]string{nil, {"b"}, {"a", "b"}, {"a", "b"}} {
		u := underway{Step: Step{Step: 41 + i}, loss: env.Ones().Later(), never: never}
		if err := r.conclude(&u); err != nil {
			t.Fatal(err)
		}
	}
	const tail = " has no gradient: it is not part of the loss"
	if want := []string{"b" + tail, "a" + tail}; !slices.Equal(watch.list, want) {
		t.Errorf("notes %q, want %q", watch.list, want)
	}
}
