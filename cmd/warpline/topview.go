package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/warpline-ml/warpline/internal/monitor"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

// framesPerSecond is how often the terminal may be drawn: a screen changes with a snapshot or a key.
const framesPerSecond = 10

// watchTop shows snapshots on the terminal until q.
func watchTop(ctx context.Context, in io.Reader, out io.Writer, sampler *monitor.Sampler, f *topFlags, color bool) error {
	m := &topModel{sample: sampler.Sample, interval: f.interval, view: monitor.View{Sort: f.sort, History: new(monitor.History)}, color: color}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())
	_, err := p.Run()
	switch {
	case ctx.Err() != nil || m.interrupted:
		return train.ErrInterrupted
	case errors.Is(err, tea.ErrProgramKilled):
		return fmt.Errorf("the terminal view ended: %w", err)
	}
	return err
}

// topModel is what the terminal shows of snapshots. It answers messages one after the other.
type topModel struct {
	sample      func() *monitor.Snapshot
	interval    time.Duration
	view        monitor.View
	last        *monitor.Snapshot
	height      int
	offset      int // lines scrolled
	paused      bool
	help        bool
	color       bool
	interrupted bool
}

// sampled is a snapshot that has come, and due the time for the next one.
type (
	sampled struct{ *monitor.Snapshot }
	due     struct{}
)

// Init implements tea.Model.
func (m *topModel) Init() tea.Cmd { return m.take }

// take takes a snapshot, on a goroutine of its own.
func (m *topModel) take() tea.Msg { return sampled{m.sample()} }

// Update implements tea.Model.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.view.Width, m.height = msg.Width, msg.Height
	case sampled:
		if !m.paused || m.last == nil {
			m.last = msg.Snapshot
			m.view.History.Add(msg.Snapshot)
		}
		return m, tea.Tick(m.interval, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.take
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

// keys are what keys do, for the help.
var keys = [][2]string{
	{"q", "end"}, {"p, space", "pause, and go on"}, {"s", "sort processes by the next of " + strings.Join(monitor.Sorts, ", ")},
	{"t", "processes below those that started them"}, {"l", "what devices do not tell, and why"}, {"↑ ↓ home", "scroll; page up and page down by half a screen"}, {"h, ?", "this help"},
}

func (m *topModel) key(k string) tea.Cmd {
	switch k {
	case "ctrl+c":
		m.interrupted = true
		return tea.Quit
	case "q", "esc":
		if m.help && k == "esc" {
			m.help = false
			return nil
		}
		return tea.Quit
	case "p", "space":
		m.paused = !m.paused
	case "s":
		at := slices.Index(monitor.Sorts, m.view.Sort)
		m.view.Sort, m.view.Tree = monitor.Sorts[(at+1)%len(monitor.Sorts)], false
	case "t":
		m.view.Tree = !m.view.Tree
	case "l":
		m.view.Lacks = !m.view.Lacks
	case "h", "?":
		m.help = !m.help
	}
	m.scroll(k)
	return nil
}

// scroll moves the view by a key.
func (m *topModel) scroll(k string) {
	switch k {
	case "up", "k":
		m.offset--
	case "down", "j":
		m.offset++
	case "pgup":
		m.offset -= m.height / 2
	case "pgdown":
		m.offset += m.height / 2
	case "home":
		m.offset = 0
	}
	m.offset = max(m.offset, 0)
}

// View implements tea.Model.
func (m *topModel) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

// text is the whole screen: what does not fit is scrolled, the last line is the keys'.
func (m *topModel) text() string {
	body := "asking devices …\n"
	switch {
	case m.help:
		body = m.helpText()
	case m.last != nil:
		body = m.view.Text(m.last)
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	room := max(m.height-1, 1)
	m.offset = min(m.offset, max(len(lines)-room, 0))
	lines = lines[m.offset:]
	more := len(lines) - room
	lines = append(lines[:min(len(lines), room)], slices.Repeat([]string{""}, max(-more, 0))...)
	return strings.Join(append(m.styled(lines), m.footer(more)), "\n")
}

// styled gives lines that head a table, and those with something to worry about, their style.
func (m *topModel) styled(lines []string) []string {
	if !m.color {
		return lines
	}
	out := slices.Clone(lines)
	for i, line := range lines {
		switch {
		case i+1 < len(lines) && strings.HasPrefix(lines[i+1], "─"), i == 0 && m.offset == 0:
			out[i] = styled(line, styleBold)
		case strings.HasPrefix(line, "─"):
			out[i] = styled(line, styleFaint)
		case strings.HasPrefix(line, "no cards:"), strings.HasPrefix(line, "  ") && strings.Contains(line, ": "):
			out[i] = styled(line, styleYellow)
		}
	}
	return out
}

func (m *topModel) helpText() string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintln(&b, render.Wrap(fmt.Sprintf("%-17s %s", k[0], k[1]), m.view.Width, 18))
	}
	return b.String() + "\n" + render.Wrap(monitor.Meaning, m.view.Width, 0) + "\n"
}

// footer is the line of keys and what is under way.
func (m *topModel) footer(more int) string {
	parts := []string{"q end", "s sort: " + m.view.Sort, "t tree", "p pause", "h help"}
	if m.view.Tree {
		parts[1] = "s sort: tree"
	}
	if m.paused {
		parts[3] = "p PAUSED"
	}
	if more > 0 {
		parts = append([]string{fmt.Sprintf("%d lines more ↓", more)}, parts...)
	}
	line := strings.Join(parts, "  ")
	width := max(m.view.Width, 1)
	line = render.Truncate(line, width)
	if m.color {
		return styled(line+strings.Repeat(" ", max(width-render.Width(line), 0)), styleReverse)
	}
	return line
}

// Styles of a terminal, by their numbers (ECMA-48, SGR).
const (
	styleBold    = 1
	styleFaint   = 2
	styleReverse = 7
	styleYellow  = 33
)

func styled(text string, style int) string { return fmt.Sprintf("\x1b[%dm%s\x1b[m", style, text) }
