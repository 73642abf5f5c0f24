package lesson

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/durable"
)

// Progress is what somebody has done, in a file.
type Progress struct {
	Read      map[string]time.Time `json:"read"`      // lessons
	Scores    map[string]float64   `json:"scores"`    // of quizzes, the best
	Exercises map[string]time.Time `json:"exercises"` // that passed

	path string
}

// file is the name of the progress in its folder.
const file = "progress.json"

// LoadProgress reads the progress of a folder; none is none yet.
func LoadProgress(dir string) (*Progress, error) {
	p := &Progress{Read: map[string]time.Time{}, Scores: map[string]float64{}, Exercises: map[string]time.Time{}, path: filepath.Join(dir, file)}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		return nil, advice.Explain(err, "mend or move "+p.path+"; nothing was written to it")
	}
	return p, nil
}

// DidRead notes that a lesson was read.
func (p *Progress) DidRead(id string, when time.Time) error {
	if p.Read == nil {
		p.Read = map[string]time.Time{}
	}
	p.Read[id] = when
	return p.save()
}

// DidQuiz notes a score, if it is the best.
func (p *Progress) DidQuiz(id string, score float64) error {
	if old, ok := p.Scores[id]; ok && old >= score {
		return nil
	}
	if p.Scores == nil {
		p.Scores = map[string]float64{}
	}
	p.Scores[id] = score
	return p.save()
}

// DidExercise notes that an exercise passed.
func (p *Progress) DidExercise(name string, when time.Time) error {
	if p.Exercises == nil {
		p.Exercises = map[string]time.Time{}
	}
	p.Exercises[name] = when
	return p.save()
}

func (p *Progress) save() error {
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return advice.Explain(err, "give another folder with --dir")
	}
	return durable.WriteFile(p.path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(p)
	})
}
