package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// categories of a timeline, by their numbers (torch/profiler/_memory_profiler.py, _CATEGORY_TO_INDEX).
var categories = [...]string{"parameter", "optimizer state", "input", "temporary", "activation", "gradient", "autograd detail", "unknown"}

// actions of a timeline, by their numbers.
var rowActions = [...]string{1: "preexisting", 2: "create", 3: "increment_version", 4: "destroy"}

// mostRows bounds the memory that a timeline takes, 8 bytes a row.
const mostRows = 1 << 26

var timelineHead = regexp.MustCompile(`^\s*\[\s*\[\s*-?\d+\s*,\s*[1-4]\s*,\s*-?\d+\s*,\s*[0-7]\s*\]`)

// IsTimeline says whether a file that begins with head is a raw timeline of memory, [[time or -1, action, bytes, category], …]
// as torch.profiler's export_memory_timeline writes it to a file *.raw.json.gz.
func IsTimeline(head []byte) bool { return timelineHead.Match(head) }

// timeline is what the rows add up to.
type timeline struct {
	rows        int
	actions     map[string]int
	first, last int64 // nanoseconds; 0 where no row has a time
	now         [len(categories)]int64
	before      int64 // bytes from before the first time
	total, peak int64
	peakAt      int64
	atPeak      [len(categories)]int64
	back        int     // times that are before the one above
	curve       []int64 // total after each row that changed it
	sampled     *sampler
}

// DiagnoseTimeline reads a raw timeline. A file that is cut or broken gives a report up to there, with a note.
func DiagnoseTimeline(ctx context.Context, name string, r io.Reader) (*finding.Report, error) {
	t := &timeline{actions: map[string]int{}}
	rows := &rowReader{r: bufio.NewReaderSize(reader{ctx, r}, 1<<16)}
	err := rows.each(t.add)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && t.rows == 0 {
		return nil, fmt.Errorf("%s: byte %d: %w", name, rows.at, err)
	}
	report := t.report()
	report.File = name
	if err != nil {
		report.Notes, report.Checked = []string{fmt.Sprintf("read up to byte %d only, %d rows: %v", rows.at, t.rows, err)}, []string{} // what is missing is not well
	}
	if t.back > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d rows are older than the row before them", t.back))
	}
	return report, nil
}

var errManyRows = fmt.Errorf("more than %d rows", mostRows)

// add adds a row. Its bytes have a sign: those that go are negative.
func (t *timeline) add(row [4]int64) error {
	at, action, bytes, category := row[0], row[1], row[2], row[3]
	if action < 1 || action >= int64(len(rowActions)) || category < 0 || category >= int64(len(categories)) {
		return fmt.Errorf("a row with action %d and category %d", action, category)
	}
	if t.rows++; t.rows > mostRows {
		return errManyRows
	}
	t.actions[rowActions[action]]++
	t.now[category] += bytes
	t.total += bytes
	if at < 0 {
		t.before += bytes
	} else {
		if t.first == 0 {
			t.first = at
		}
		if at < t.last {
			t.back++
		}
		t.last = max(t.last, at)
	}
	if t.total > t.peak {
		t.peak, t.peakAt, t.atPeak = t.total, at, t.now
	}
	if at >= 0 && action != 3 { // what is written to stays as large as it is
		t.curve = append(t.curve, t.total)
		t.sample()
	}
	return nil
}

func byName(of [len(categories)]int64) map[string]int64 {
	m := map[string]int64{}
	for i, n := range of {
		if n != 0 {
			m[categories[i]] = n
		}
	}
	return m
}

func (t *timeline) report() *finding.Report {
	r := &finding.Report{Kind: "timeline", Findings: []finding.Finding{}, Checked: []string{}, Detail: t, Figures: map[string]any{"rows": t.rows, "actions": t.actions, "before": t.before, "peak": t.peak,
		"peak_time_ns": t.peakAt, "peak_by": byName(t.atPeak), "end": t.total, "end_by": byName(t.now), "span_us": float64(t.last-t.first) / 1e3}}
	if t.peak > 0 {
		who := slices.Index(t.atPeak[:], slices.Max(t.atPeak[:]))
		r.Checked = append(r.Checked, fmt.Sprintf("the peak is %s, of which %s is %s", render.Bytes(t.peak), render.Bytes(t.atPeak[who]), categories[who]))
	}
	switch f, steps := t.growing(), len(troughs(t.curve)); {
	case f != nil:
		r.Findings = append(r.Findings, *f)
	case steps > growingSteps:
		r.Checked = append(r.Checked, fmt.Sprintf("no growth from step to step is seen over %d steps: %s before, %s at the end", steps, render.Bytes(t.before), render.Bytes(t.total)))
	default:
		r.Notes = append(r.Notes, fmt.Sprintf("could not be judged: growth from step to step, since the timeline shows %d steps and %d are needed", steps, growingSteps+1))
	}
	return r
}

// growing is R06 of a timeline, which has no lines of a program.
func (t *timeline) growing() *finding.Finding {
	at := troughs(t.curve)
	values := make([]int64, len(at))
	for i, row := range at {
		values[i] = t.curve[row]
	}
	if len(values) == 0 {
		return nil
	}
	g, ok := grows(values, t.peak)
	if !ok {
		return nil
	}
	return &finding.Finding{
		Rule:  "R06",
		Title: fmt.Sprintf("memory grows by %s a step", render.Bytes(int64(g.slope))),
		Evidence: []finding.Evidence{
			measured("growth", int64(g.slope), "%d steps in a row each end with more in use than the one before: %s a step (r² %.3f)", g.steps, render.Bytes(int64(g.slope)), g.fit),
		},
		Fix:         "record a snapshot of some steps, which has the lines (torch.cuda.memory._record_memory_history), and diagnose that; keep numbers and not tensors across steps",
		Gain:        finding.Gain{Text: "what the steps of this file left", Bytes: values[len(values)-1] - values[g.from]},
		Confidence:  finding.Medium,
		DisprovedBy: "memory stays level over further steps: a cache was filling, or the run had just begun",
	}
}

// rowReader reads a list of lists of four numbers in JSON, without a bound on its length.
type rowReader struct {
	r    *bufio.Reader
	at   int64 // bytes read
	word []byte
}

func (r *rowReader) byte() (byte, error) {
	for {
		c, err := r.r.ReadByte()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		r.at++
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
	}
}

func (r *rowReader) expect(want byte) error {
	c, err := r.byte()
	if err == nil && c != want {
		err = fmt.Errorf("%q where %q should be", c, want)
	}
	return err
}

// each gives all rows to do.
func (r *rowReader) each(do func([4]int64) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for {
		row, err := r.row()
		if err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
		c, err := r.byte()
		switch {
		case err != nil:
			return err
		case c == ']':
			return nil
		case c != ',':
			return fmt.Errorf("%q between rows", c)
		}
	}
}

func (r *rowReader) row() (row [4]int64, err error) {
	if err := r.expect('['); err != nil {
		return row, err
	}
	for i := range row {
		end := byte(',')
		if i == len(row)-1 {
			end = ']'
		}
		if row[i], err = r.number(end); err != nil {
			return row, err
		}
	}
	return row, nil
}

// longestNumber is more digits than a number of 64 bits has.
const longestNumber = 40

// number reads a number and what ends it.
func (r *rowReader) number(end byte) (int64, error) {
	r.word = r.word[:0]
	for {
		c, err := r.byte()
		if err != nil {
			return 0, err
		}
		if c == end {
			break
		}
		if r.word = append(r.word, c); len(r.word) > longestNumber {
			return 0, fmt.Errorf("%q is no number", r.word)
		}
	}
	if n, err := strconv.ParseInt(string(r.word), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(r.word), 64)
	if err != nil || !(f > -1<<63 && f < 1<<63) {
		return 0, fmt.Errorf("%q is no number of this list", r.word)
	}
	return int64(f), nil
}
