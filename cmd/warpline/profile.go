package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/train"
)

const profileLong = `Show again where the steps of a profiled run went. RUN is a run folder, of which the latest profile is shown, the folder
of a profile, or its profile.json.

Without --by it is the screen that train --profile ends with: compute, copies, idle time with its reasons, the operations that
took most, and what was found to be wrong. With --by it is a table. --against shows what changed since another profile.`

const profileExample = `  warpline train digits --profile --out runs/a
  warpline profile runs/a
  warpline profile runs/a --by line --sort GB/s --explain
  warpline profile runs/b --against runs/a`

// profileFlags are what the command is told.
type profileFlags struct {
	by, sort, against string
	top               int
	explain           bool
}

func newProfile() *cobra.Command {
	var c profileFlags
	cmd := &cobra.Command{
		Use: "profile RUN", Short: "Show where the time of a profiled run went", Long: profileLong, Example: profileExample,
		Args: from(1, 1),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.by, "by", "", "rows by op, module, line, shape or kernel")
	f.StringVar(&c.sort, "sort", "", "the column by which rows are in order (default self)")
	f.IntVar(&c.top, "top", 20, "rows; 0: all")
	f.BoolVar(&c.explain, "explain", false, "say what each column is, and what to do if it is high")
	f.StringVar(&c.against, "against", "", "another profile, for what has changed since")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runProfile(cmd, args[0], &c) }
	return cmd
}

func runProfile(cmd *cobra.Command, from string, c *profileFlags) error {
	if c.top < 0 {
		return advice.Failf("give a number from 0 up", "--top is %d", c.top)
	}
	t := prof.Table{Sort: c.sort, Top: c.top, Explain: c.explain}
	if t.Top == 0 {
		t.Top = -1
	}
	table := c.by != "" || c.sort != "" || c.explain || c.against != "" || cmd.Flags().Changed("top")
	if c.by != "" {
		var err error
		if t.By, err = prof.ByName(c.by); err != nil {
			return err
		}
	}
	p, err := readProfile(from)
	if err != nil {
		return err
	}
	s := newScreen(cmd)
	t.Width = s.tableWidth()
	switch {
	case c.against != "":
		err = s.profileAgainst(p, c.against, t)
	case table:
		err = s.profileRows(p, t)
	default:
		err = s.profileScreen(p)
	}
	if err != nil {
		return err
	}
	return s.failure()
}

// profileScreen shows the whole of it.
func (s *screen) profileScreen(p *prof.Profile) error {
	found := p.Findings()
	if found == nil {
		found = []prof.Finding{} // "[]", which says that there is none
	}
	if err := s.emit(map[string]any{"profile": p.Facts(), "findings": found}); err != nil {
		return err
	}
	return p.WriteScreen(s.text, min(s.tableWidth(), 120))
}

// profileRows shows a table.
func (s *screen) profileRows(p *prof.Profile, t prof.Table) error {
	if err := p.WriteTable(s.text, t); err != nil {
		return err
	}
	rows := p.Rows(t.By)
	if t.Top >= 0 {
		rows = rows[:min(len(rows), t.Top)]
	}
	for _, r := range rows {
		if err := s.emit(r); err != nil {
			return err
		}
	}
	return nil
}

// profileAgainst shows what has changed since another profile.
func (s *screen) profileAgainst(p *prof.Profile, other string, t prof.Table) error {
	before, err := readProfile(other)
	if err != nil {
		return err
	}
	for _, c := range p.Against(before, t.By) {
		if err := s.emit(c); err != nil {
			return err
		}
	}
	return p.WriteAgainst(s.text, before, t)
}

// readProfile reads the profile that a path names.
func readProfile(path string) (*prof.Profile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, advice.Explain(err, "give the folder of a run that was trained with --profile")
	}
	if !info.IsDir() {
		return prof.Read(path)
	}
	for _, dir := range []string{path, train.LatestProfile(path)} {
		p, err := prof.Read(filepath.Join(dir, train.ProfileFile))
		if !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	return nil, advice.Failf("make one: warpline train --resume --profile --steps MORE --out "+quoted(path), "%s has no profile", path)
}
