// Package kineto reads traces of PyTorch's profiler, and says what is wrong in them: Kineto's files from PyTorch 1.8 to
// today, of NVIDIA's and AMD's cards, and Chrome traces in their form. The figures are those of one file; what is wrong is
// said by rules with the ids R13 to R50, each with its evidence, what to do, what that gains and what would disprove it.
//
// Times are nanoseconds in an int64 throughout: microseconds since 1970 with three decimals have more digits than a float64.
package kineto

import (
	"bytes"
	"context"
	"io"

	"github.com/warpline-ml/warpline/internal/finding"
)

// Is tells by the beginning of a file that it is such a trace.
func Is(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n")
	if len(head) == 0 {
		return false
	}
	switch head[0] {
	case '[':
		return looksLikeEvent(bytes.TrimLeft(head[1:], " \t\r\n")) == 1 && bytes.Contains(head, []byte(`"ph"`))
	case '{':
		return bytes.Contains(head, []byte(`"traceEvents"`)) ||
			bytes.Contains(head, []byte(`"schemaVersion"`)) && bytes.Contains(head, []byte(`"deviceProperties"`))
	}
	return false
}

// Diagnose reads a trace, decompressed, and says what is wrong in it. The report's Detail is its *Trace,
// without the events themselves. An error says that
// there is none in r, or that ctx is done.
func Diagnose(ctx context.Context, name string, r io.Reader) (*finding.Report, error) {
	t, err := Read(ctx, r)
	if err != nil {
		return nil, err
	}
	rep := &finding.Report{File: name, Kind: "trace", Figures: t.figures(), Detail: t}
	a := t.analyse()
	a.figures(rep.Figures)
	rep.Findings, rep.Checked, rep.Figures["not_judged"] = a.judge()
	rep.Notes = t.Notes()
	if why := a.judgeable(); why != "" && len(rep.Findings) == 0 {
		rep.Notes, rep.Checked = append(rep.Notes, "could not be judged: "+why), []string{}
	} else if left := a.headroom(rep.Findings); left != "" {
		rep.Notes = append(rep.Notes, left)
	}
	a.keep()
	rep.Figures["critical_path"] = pathRows(t.Path, t.Marked)
	if len(t.Path) > 0 {
		rep.Notes = append(rep.Notes, "the critical path: "+pathText(t.Path))
	}
	t.Drawing = a.draw()
	t.shed()
	return rep, nil
}
