// Package simdebug is a debugger for kernels on the simulated GPU: "warpline sim debug" as values. A Session runs one launch,
// which waits at places in the code, at accesses to an address and at findings; its blocks, warps, lanes, registers and memory can
// be looked at meanwhile. It goes back by running the launch again up to an earlier instruction: a launch does the same each time.
//
//	session.go   a session and its commands
//	run.go       one launch, and when it waits
//	place.go     breakpoints and watches
//	inspect.go   registers and memory
//	show.go      where things are: lanes, warps, blocks, lines
//	reply.go     what commands answer
//	serve.go     commands from a terminal, or as JSON
package simdebug

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/simrun"
)

// Session is one debugging of a kernel. Its methods are for one goroutine, but for Interrupt.
type Session struct {
	config   simrun.Config
	run      *run
	breaks   []*Break
	watches  []*Watch
	findings bool // waits at findings
	ids      int
	history  []int64 // events of earlier stops
	last     pause

	interrupted atomic.Bool // until a command clears it that waits in line behind

	// What commands are about. The warp is nil where the launch has ended.
	w    *warp.Warp
	lane int
}

// Start launches the kernel and waits at its first instruction.
func Start(ctx context.Context, c simrun.Config) (*Session, *Reply, error) {
	s := &Session{config: c, findings: true}
	if err := s.begin(goal{kind: toEvent, event: 1}); err != nil {
		return nil, nil, err
	}
	if err := s.settle(ctx); err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, s.stopped("start"), nil
}

// Close ends the launch.
func (s *Session) Close() {
	if s.run != nil {
		s.run.end()
	}
}

// Interrupt makes a launch that runs wait at its next instruction, and later ones too until pause is done. It may be called from
// any goroutine.
func (s *Session) Interrupt() { s.interrupted.Store(true) }

// pause is done when a launch waits, as it does whenever a command is.
func (s *Session) pause(context.Context, []string) (*Reply, error) {
	s.interrupted.Store(false)
	return s.stopped("pause"), nil
}

// settle waits for the launch to wait, and looks at what it waits at.
func (s *Session) settle(ctx context.Context) error {
	p, err := s.run.wait(ctx)
	if err != nil {
		return err
	}
	s.last, s.w = p, nil
	if s.run.ended {
		return nil
	}
	s.w = s.run.w
	switch {
	case p.finding != nil:
		d, t := p.at.Launch.Block, p.finding.Thread
		n := int(t[0] + d[0]*(t[1]+d[1]*t[2]))
		s.w, s.lane = p.at.Warps()[n/simt.WarpSize], n%simt.WarpSize
	case p.lane != nil:
		s.lane = *p.lane
	}
	if m := s.w.Mask; s.w == s.run.w && m>>s.lane&1 == 0 && m != 0 {
		s.lane = lowest(m)
	}
	return nil
}

// resume lets the launch run to a goal.
func (s *Session) resume(ctx context.Context, cmd string, g goal) (*Reply, error) {
	if s.run.ended {
		return nil, advice.Failf("restart, back, undo and goto start it again", "the kernel has ended")
	}
	s.history = append(s.history, s.run.event)
	if s.w != nil {
		g.block, g.warp, g.w, g.lane = s.w.CTA.Index, s.w.Id, s.w, s.lane
	}
	if g.kind == toLine {
		g.line = lineOf(s.point(s.w))
	}
	s.run.resume <- g
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.stopped(cmd), nil
}

// replay starts the launch again, up to an event.
func (s *Session) replay(ctx context.Context, g goal) error {
	s.run.end()
	if err := s.begin(g); err != nil {
		return err
	}
	return s.settle(ctx)
}

// point is the instruction that a warp runs next, as far as that is known: of the one that waits, its own.
func (s *Session) point(w *warp.Warp) *warp.Point {
	if w == s.run.w {
		return s.run.p
	}
	for _, part := range w.Parts() {
		if part.Point != nil {
			return part.Point
		}
	}
	return s.run.p
}

// Do carries out one command, as words. What is wrong with it is in the Reply; an error is ctx's, or says that the session cannot
// go on. Quit is told by Reply.Quit.
func (s *Session) Do(ctx context.Context, words []string) (*Reply, error) {
	if len(words) == 0 {
		return &Reply{OK: true}, nil
	}
	c := find(words[0])
	if c == nil {
		return failed(words[0], advice.Failf("help lists the commands", "no command %q", words[0])), nil
	}
	if n := len(words) - 1; n < c.least || c.most >= 0 && n > c.most {
		return failed(c.name, advice.Failf(c.usage(), "%s has %d words behind it", c.name, n)), nil
	}
	r, err := c.do(s, ctx, words[1:])
	var known *advice.Error
	switch {
	case errors.As(err, &known):
		return failed(c.name, known), nil
	case err != nil:
		return nil, err
	}
	r.OK, r.Cmd = true, c.name
	return r, nil
}

// command is one of the words that a session knows.
type command struct {
	name, short string // short: another name
	args, help  string
	least, most int // words behind it; -1: any number
	do          func(s *Session, ctx context.Context, args []string) (*Reply, error)
}

func (c *command) usage() string { return strings.TrimSpace(c.name + " " + c.args) }

// commands are all, in the order of help.
var commands []command

// init breaks a cycle: help tells of the table that it is in.
func init() {
	commands = []command{
		{"break", "b", "PLACE [block B] [warp W]", "wait at a line: 12 or sum.cu:12 of the source, ptx:57 of the PTX; at entry of each block; at finding", 1, 5, (*Session).addBreak},
		{"watch", "", "WHERE [BYTES] [reads]", "wait before an access that writes there, or reads: arg0+64, shared:0, global:0x…, a variable, %rd4", 1, 3, (*Session).addWatch},
		{"delete", "d", "[N]", "forget a breakpoint or watch, or all; delete finding goes on over findings", 0, 1, (*Session).remove},
		{"continue", "c", "", "run to the next place to wait", 0, 0, func(s *Session, ctx context.Context, _ []string) (*Reply, error) {
			return s.resume(ctx, "continue", goal{kind: toStop})
		}},
		{"step", "s", "[warp|block]", "run to the lane's next line; to the next instruction of its warp, or of its block", 0, 1, (*Session).step},
		{"back", "", "[N]", "go back N instructions of the warp (default 1)", 0, 1, (*Session).back},
		{"undo", "u", "", "go back to where the launch waited before", 0, 0, (*Session).undo},
		{"goto", "", "EVENT", "go to an instruction by its number, which each stop tells", 1, 1, (*Session).goTo},
		{"restart", "", "", "begin again, with the same breakpoints", 0, 0, (*Session).restart},
		{"pause", "", "", "wait at once; for a launch that runs", 0, 0, (*Session).pause},
		{"where", "w", "", "block, warp, lanes, line, and the calls that lead there", 0, 0, func(s *Session, _ context.Context, _ []string) (*Reply, error) { return s.stopped("where"), nil }},
		{"list", "l", "[ptx] [LINE]", "lines around the next one, of the source or the PTX", 0, 2, (*Session).list},
		{"lanes", "", "", "each lane of the warp: thread, whether it runs, waits or has exited, and where", 0, 0, (*Session).lanes},
		{"warps", "", "", "the warps of the block", 0, 0, (*Session).warps},
		{"blocks", "", "", "the blocks that have begun", 0, 0, (*Session).blocks},
		{"lane", "", "N", "look at another lane of the warp", 1, 1, (*Session).setLane},
		{"warp", "", "N", "look at another warp of the block", 1, 1, (*Session).setWarp},
		{"block", "", "N", "look at another block that runs, by its number in the grid", 1, 1, (*Session).setBlock},
		{"print", "p", "REGISTER [x|d|u|f]", "a register in all lanes: %f1, %p2, %tid.x; in hex, as signed, unsigned or float", 1, 2, (*Session).print},
		{"registers", "r", "[PREFIX]", "all registers of the lane", 0, 1, (*Session).registers},
		{"mem", "m", "WHERE [COUNT] [TYPE]", "memory: arg0+64, shared:0, global:0x…, local:0, param:0, a variable, %rd4; f32 f64 i8…i64 u8…u64 x32 x64", 1, 3, (*Session).memory},
		{"shared", "", "[OFFSET [ROWS]]", "shared memory by bank, 128 bytes a row", 0, 2, (*Session).shared},
		{"bank", "", "N [COUNT]", "the words of one of the 32 banks of shared memory", 1, 2, (*Session).bank},
		{"breaks", "", "", "the breakpoints and watches", 0, 0, (*Session).listBreaks},
		{"findings", "", "", "what the checks have found so far", 0, 0, (*Session).listFindings},
		{"help", "h", "[COMMAND]", "this list", 0, 1, (*Session).help},
		{"quit", "q", "", "end", 0, 0, func(*Session, context.Context, []string) (*Reply, error) { return &Reply{Quit: true}, nil }},
	}
}

// find is a command by its name, or an unambiguous start of it.
func find(name string) *command {
	var found *command
	for i := range commands {
		c := &commands[i]
		if c.name == name || c.short == name {
			return c
		}
		if strings.HasPrefix(c.name, name) {
			if found != nil {
				return nil
			}
			found = c
		}
	}
	return found
}

func (s *Session) help(_ context.Context, args []string) (*Reply, error) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range commands {
		c := &commands[i]
		if len(args) == 1 && find(args[0]) != c {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.usage(), c.short, c.help)
	}
	table.Flush()
	if b.Len() == 0 {
		return nil, advice.Failf("help lists the commands", "no command %q", args[0])
	}
	return &Reply{Text: b.String()}, nil
}

func (s *Session) step(ctx context.Context, args []string) (*Reply, error) {
	kind := toLine
	if len(args) == 1 {
		switch args[0] {
		case "warp", "w":
			kind = toInstruction
		case "block", "b":
			kind = toBlock
		default:
			return nil, advice.Failf("step, step warp or step block", "step %s: no such step", args[0])
		}
	}
	return s.resume(ctx, "step", goal{kind: kind})
}

// back goes to an earlier instruction of the warp: a first replay finds its number, a second goes there.
func (s *Session) back(ctx context.Context, args []string) (*Reply, error) {
	n, err := optional(args, 0, 1, 1, 1<<20)
	if err != nil {
		return nil, err
	}
	s.history = append(s.history, s.run.event)
	g := goal{kind: toEvent, event: s.run.event, past: make([]int64, n)}
	w := s.run.w
	if s.w != nil {
		w = s.w
	}
	if g.block, g.warp = w.CTA.Index, w.Id; s.run.ended {
		g.event++ // the last one counts too
	}
	if err := s.replay(ctx, g); err != nil {
		return nil, err
	}
	past := s.run.goal
	if past.seen == 0 {
		return nil, advice.Failf("it has begun here; blocks and warps tell of others", "warp %d of block %d has run no instruction before this one", g.warp, g.block)
	}
	at := past.past[0]
	if past.seen >= int64(n) {
		at = past.past[past.seen%int64(n)]
	}
	return s.to(ctx, "back", at)
}

func (s *Session) restart(ctx context.Context, _ []string) (*Reply, error) {
	s.history = append(s.history, s.run.event)
	return s.to(ctx, "restart", 1)
}

// to goes to an event by a replay.
func (s *Session) to(ctx context.Context, cmd string, event int64) (*Reply, error) {
	if err := s.replay(ctx, goal{kind: toEvent, event: event}); err != nil {
		return nil, err
	}
	return s.stopped(cmd), nil
}

func (s *Session) undo(ctx context.Context, _ []string) (*Reply, error) {
	n := len(s.history)
	if n == 0 {
		return nil, advice.Failf("back N goes back by instructions", "this is where it waited first")
	}
	at := s.history[n-1]
	s.history = s.history[:n-1]
	return s.to(ctx, "undo", at)
}

func (s *Session) goTo(ctx context.Context, args []string) (*Reply, error) {
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || n < 1 {
		return nil, advice.Failf("as in goto 120", "%q is not the number of an instruction", args[0])
	}
	s.history = append(s.history, s.run.event)
	return s.to(ctx, "goto", n)
}

// optional is the i-th word as a number in a range, or what it is where there is none.
func optional(args []string, i, otherwise, least, most int) (int, error) {
	if i >= len(args) {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(args[i], 0, 64)
	if err != nil || n < int64(least) || n > int64(most) {
		return 0, advice.Failf(fmt.Sprintf("give a number from %d to %d", least, most), "%q is not one", args[i])
	}
	return int(n), nil
}

func (s *Session) addBreak(_ context.Context, args []string) (*Reply, error) {
	if args[0] == "finding" {
		s.findings = true
		return &Reply{Text: "waits at findings\n"}, nil
	}
	if s.run.code == nil {
		return nil, advice.Failf("restart begins again", "the kernel has run no instruction")
	}
	b := &Break{Where: args[0], Block: -1, Warp: -1, entry: args[0] == "entry"}
	for i := 1; i < len(args); i += 2 {
		n, err := optional(args, i+1, -1, 0, 1<<31-1)
		switch {
		case err != nil:
			return nil, err
		case args[i] == "block" && n >= 0:
			b.Block = n
		case args[i] == "warp" && n >= 0:
			b.Warp = n
		default:
			return nil, advice.Failf("as in break 12 block 0 warp 1", "break %s: %q is not understood", args[0], args[i])
		}
	}
	if !b.entry {
		var err error
		if b.sites, err = s.sitesOf(args[0]); err != nil {
			return nil, err
		}
	}
	s.ids++
	b.ID = s.ids
	s.breaks = append(s.breaks, b)
	return &Reply{Breaks: []*Break{b}, Text: b.text()}, nil
}

func (b *Break) text() string {
	t := fmt.Sprintf("breakpoint %d at %s", b.ID, b.Where)
	if b.Block >= 0 {
		t += fmt.Sprintf(" in block %d", b.Block)
	}
	if b.Warp >= 0 {
		t += fmt.Sprintf(" in warp %d", b.Warp)
	}
	return t + times(b.Hits)
}

func times(hits int) string {
	if hits == 0 {
		return "\n"
	}
	return fmt.Sprintf(", hit %d times\n", hits)
}

func (w *Watch) text() string {
	kind := "writes"
	if w.Reads {
		kind = "reads and writes"
	}
	return fmt.Sprintf("watch %d of %s to %d bytes at %s %s%s", w.ID, kind, w.Bytes, w.Space, w.Addr, times(w.Hits))
}

func (s *Session) remove(_ context.Context, args []string) (*Reply, error) {
	if len(args) == 0 {
		s.breaks, s.watches = nil, nil
		return &Reply{Text: "no breakpoints\n"}, nil
	}
	if args[0] == "finding" {
		s.findings = false
		return &Reply{Text: "goes on over findings\n"}, nil
	}
	n, err := optional(args, 0, 0, 1, 1<<31-1)
	if err != nil {
		return nil, err
	}
	for i, b := range s.breaks {
		if b.ID == n {
			s.breaks = append(s.breaks[:i:i], s.breaks[i+1:]...)
			return &Reply{Text: fmt.Sprintf("breakpoint %d is gone\n", n)}, nil
		}
	}
	for i, w := range s.watches {
		if w.ID == n {
			s.watches = append(s.watches[:i:i], s.watches[i+1:]...)
			return &Reply{Text: fmt.Sprintf("watch %d is gone\n", n)}, nil
		}
	}
	return nil, advice.Failf("breaks lists them", "there is no breakpoint or watch %d", n)
}

func (s *Session) listBreaks(context.Context, []string) (*Reply, error) {
	r := &Reply{Breaks: s.breaks, Watches: s.watches}
	for _, b := range s.breaks {
		r.Text += b.text()
	}
	for _, w := range s.watches {
		r.Text += w.text()
	}
	if r.Text == "" {
		r.Text = "no breakpoints\n"
	}
	if s.findings {
		r.Text += "waits at findings\n"
	}
	return r, nil
}
