package train

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/tfevents"
)

// scalars are the figures of a session of a run for TensorBoard, in a file of its own, which begins with the first of them.
type scalars struct {
	file *os.File
	buf  *bufio.Writer
	to   *tfevents.Writer
	last int // step of the last score that is here
}

// line writes the figures of a line of the log.
func (s *scalars) line(dir string, line any) error {
	switch l := line.(type) {
	case Step:
		return s.put(dir, l.Step, map[string]float64{"loss/train": l.Loss})
	case Score:
		s.last = l.Step
		return s.put(dir, l.Step, named(l.ValLoss, l.Metrics))
	case *Result: // it may have a score that no line has
		if n := len(l.Scores); n > 0 && l.Scores[n-1].Step == l.Steps && s.last != l.Steps {
			return s.line(dir, l.Scores[n-1])
		}
	}
	return nil
}

func named(loss float64, metrics map[string]float64) map[string]float64 {
	all := map[string]float64{"loss/held out": loss}
	for name, v := range metrics {
		all["metrics/"+name] = v
	}
	return all
}

func (s *scalars) put(dir string, step int, figures map[string]float64) (err error) {
	now := time.Now()
	if s.to == nil {
		if err := s.open(dir, now); err != nil {
			return err
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(figures)) {
		err = errors.Join(err, s.to.Scalar(now, step, tag, figures[tag]))
	}
	return err
}

// open makes the file, by the name that TensorBoard looks for.
func (s *scalars) open(dir string, now time.Time) (err error) {
	path := filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d.warpline", now.UnixNano()))
	if s.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return err
	}
	s.buf = bufio.NewWriter(s.file)
	s.to, err = tfevents.NewWriter(s.buf, now)
	return err
}

func (s *scalars) flush() error {
	if s.buf == nil {
		return nil
	}
	return s.buf.Flush()
}

func (s *scalars) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.flush(), s.file.Close())
}
