// Package diagnose reads files that other programs left behind (logs, error texts, traces, snapshots, what tools of the
// machine print) and says what is wrong: it recognises each by its content, unpacks and decodes it, hands it to the reader
// of its kind, and puts together what belongs together. Readers are packages of their own, and know nothing of this one.
package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/errortext"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Config is what a diagnosis is told.
type Config struct {
	Sizes    errortext.Sizes                      // of the model, where they are known: requests of an out-of-memory are matched with them
	Stdin    io.Reader                            // what the name "-" reads
	Progress func(name string, done, total int64) // bytes of a file that were read, of how many (0: unknown); may be nil
}

// mostFiles is how many files of a folder are read.
const mostFiles = 10_000

// Stdin is the name that reads the standard input.
const Stdin = "-"

// standardInput is what reports and errors call it.
const standardInput = "standard input"

// Tell is given each report. Part is one of a folder's or of several files whose like are compared: what matters of it is in the
// group's report, which follows.
type Tell func(r *finding.Report, part bool) error

// Run reads what names name, in their order, and gives each report to tell. A folder's files are each reported, and behind
// them the folder as a group. What cannot be read does not keep the others from being read: all errors are returned
// together. The first error of tell, and an interruption, end it.
func (c *Config) Run(ctx context.Context, names []string, tell Tell) error {
	var failed []error
	var all []*finding.Report
	compare := len(names) > 1 && !slices.ContainsFunc(names, isFolder)
	first := tell
	if compare {
		first = later
	}
	for _, name := range names {
		reports, err := c.input(ctx, name, first)
		if stop := new(stopped); errors.As(err, &stop) || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if err != nil {
			failed = append(failed, err)
		}
		all = append(all, reports...)
	}
	if compare {
		if err := members(all, tell); err != nil {
			return err
		}
		if err := c.together(ctx, names, all, tell); err != nil {
			return err
		}
	}
	return joined(failed)
}

// stopped is an error of who is told.
type stopped struct{ error }

// Unwrap returns it.
func (s *stopped) Unwrap() error { return s.error }

// told gives a report away.
func told(tell Tell, r *finding.Report, part bool) error {
	if err := tell(tidied(r), part); err != nil {
		return &stopped{err}
	}
	return nil
}

// later tells nothing yet: what a report is a part of shows when all are there.
func later(*finding.Report, bool) error { return nil }

// members tells reports that may be compared with each other.
func members(all []*finding.Report, tell Tell) error {
	for _, m := range all {
		if err := told(tell, m, comparable(m.Kind, all)); err != nil {
			return err
		}
	}
	return nil
}

// joined is one error of several, with the hint of the first.
func joined(failed []error) error {
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	texts := make([]string, len(failed))
	for i, err := range failed {
		texts[i] = err.Error()
	}
	return &advice.Error{Text: strings.Join(texts, "; "), Hint: advice.HintOf(failed[0]), Err: errors.Join(failed...)}
}

// input reads one file, folder or the standard input.
func (c *Config) input(ctx context.Context, name string, tell Tell) ([]*finding.Report, error) {
	if name == Stdin {
		return c.one(ctx, standardInput, c.Stdin, 0, tell)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, advice.Explain(err, "give a file, a folder, or - for the standard input")
	}
	if info.IsDir() {
		return c.folder(ctx, name, tell)
	}
	return c.file(ctx, name, tell)
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// file reads a file of the disk.
func (c *Config) file(ctx context.Context, name string, tell Tell) ([]*finding.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, advice.Explain(err, "see whether you may read it")
	}
	defer f.Close()
	size := int64(0)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return c.one(ctx, name, f, size, tell)
}

// one reads a stream and tells its report.
func (c *Config) one(ctx context.Context, name string, r io.Reader, size int64, tell Tell) ([]*finding.Report, error) {
	report, err := c.Read(ctx, name, r, size)
	if err != nil {
		return nil, err
	}
	return []*finding.Report{report}, told(tell, report, false)
}

// Read recognises and reads one stream; size is how long it is, 0 where that is not known.
func (c *Config) Read(ctx context.Context, name string, r io.Reader, size int64) (*finding.Report, error) {
	s, err := c.open(ctx, name, r, size)
	if err != nil {
		return nil, err
	}
	for _, k := range c.kinds() {
		if !k.is(s.head) {
			continue
		}
		report, err := k.diagnose(ctx, name, s)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errortext.ErrUnknown):
			return nil, unknown(name, s.head)
		case err != nil:
			return nil, advice.Explain(of(name, err), "it was taken for "+k.words+"; is it whole?")
		}
		report.Notes = append(s.notes(), report.Notes...)
		return report, nil
	}
	return nil, unknown(name, s.head)
}

// of names the file that an error is of, once: readers may have named it.
func of(file string, err error) error {
	if strings.HasPrefix(err.Error(), file+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// unknownHint is what to do with a file that nobody reads. The table of kinds is in docs/diagnose.md.
const unknownHint = "give it whole, as it was written: an error text with the lines above it, a job's log, a trace, a memory snapshot, or what nvidia-smi, dmesg or collect_env print; " +
	"what is wrong with this machine itself says warpline doctor"

// unknown is the error of a file that nobody reads, by its head.
func unknown(name string, head []byte) error {
	text := name + ": nothing in it is known"
	var syntax *json.SyntaxError
	var value json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(head)).Decode(&value); errors.As(err, &syntax) && strings.Contains(syntax.Error(), "depth") {
		text += fmt.Sprintf("; as JSON it is nested too deeply to be read from byte %d on", syntax.Offset)
	}
	return &advice.Error{Text: text, Hint: unknownHint, Err: errUnknown}
}

// errUnknown is of files that nobody reads.
var errUnknown = errors.New("unknown content")

// folder reads the files of a folder and those below it, by name, and then tells what they say together.
func (c *Config) folder(ctx context.Context, dir string, tell Tell) ([]*finding.Report, error) {
	names, notes, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	var all []*finding.Report
	for _, name := range names {
		reports, err := c.file(ctx, name, later)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			notes = append(notes, err.Error())
		}
		all = append(all, reports...)
	}
	if len(all) == 0 {
		return nil, nothingIn(dir, names, notes)
	}
	if err := members(all, tell); err != nil {
		return all, err
	}
	group, err := c.group(ctx, dir, all)
	if err != nil {
		return all, err
	}
	group.Notes = append(group.Notes, fewer(notes)...)
	return all, told(tell, group, false)
}

// nothingIn is the error of a folder without a file that is understood.
func nothingIn(dir string, names, notes []string) error {
	if len(names) == 0 {
		text := dir + " has no files"
		if len(notes) > 0 {
			text += " that could be read (" + strings.Join(fewer(notes), "; ") + ")"
		}
		return advice.Failf("give the folder that has the logs", "%s", text)
	}
	return advice.Failf(unknownHint, "%s: none of its %d files is understood (%s)", dir, len(names), notes[0])
}

// mostNotes is how many files that were not read are named one by one.
const mostNotes = 8

// fewer are notes with the last ones counted.
func fewer(notes []string) []string {
	if len(notes) <= mostNotes {
		return notes
	}
	return append(notes[:mostNotes:mostNotes], fmt.Sprintf("and %d more that were not read", len(notes)-mostNotes))
}

// filesIn are the regular files of a folder and those below, in order; notes name what was passed over. Links are not followed,
// hidden files are left out.
func filesIn(dir string) (names, notes []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil:
			notes = append(notes, err.Error())
			return nil
		case path != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			notes = append(notes, path+" is a link, and links are not followed: name what it leads to")
			return nil
		case !d.Type().IsRegular():
			return nil
		case len(names) == mostFiles:
			return advice.Failf("give the folder of one job", "%s has more than %d files", dir, mostFiles)
		}
		names = append(names, path)
		return nil
	})
	if err != nil {
		return nil, nil, advice.Explain(err, "see whether you may read the folder")
	}
	sorting.By(names, natural)
	return names, notes, nil
}

// tidied is a report as its JSON wants it: lists that are empty and not absent, and no figure that is no number.
func tidied(r *finding.Report) *finding.Report {
	if r.Findings == nil {
		r.Findings = []finding.Finding{}
	}
	for i := range r.Findings {
		if r.Findings[i].Evidence == nil {
			r.Findings[i].Evidence = []finding.Evidence{}
		}
	}
	if r.Checked == nil {
		r.Checked = []string{}
	}
	if r.Figures == nil {
		r.Figures = map[string]any{}
	}
	r.Notes = append(r.Notes, numbersOnly(r.Figures)...)
	return r
}
