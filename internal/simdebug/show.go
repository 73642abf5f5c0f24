package simdebug

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/simrun"
)

func lowest(m uint32) int { return bits.TrailingZeros32(m) }

// Stop is where a launch waits, and why; or that it has ended.
type Stop struct {
	Reason  string          `json:"reason"` // "start", "step", "event", "paused", "exited", "finding", "end", "breakpoint 1", "watch 2: …"
	Event   int64           `json:"event"`  // the number of the instruction that comes next, for goto
	Ended   bool            `json:"ended"`
	Finding *simrun.Finding `json:"finding,omitempty"`
	Found   int             `json:"findings"` // of a launch that has ended
	Output  string          `json:"output,omitempty"`
	Fault   string          `json:"fault,omitempty"`

	*At // nil of a launch that has ended
}

// At is the instruction that a warp runs next.
type At struct {
	Block    int       `json:"block"` // in the order of the grid
	BlockID  [3]uint32 `json:"block_id"`
	Warp     uint32    `json:"warp"`
	Lane     int       `json:"lane"` // in focus
	Thread   [3]uint32 `json:"thread"`
	Mask     string    `json:"mask"`   // lanes that come to it together, in hex
	Active   string    `json:"active"` // of them those for which its predicate holds
	PTXLine  int       `json:"ptx_line"`
	PTX      string    `json:"ptx"`
	Source   string    `json:"source,omitempty"`
	Text     string    `json:"source_text,omitempty"`
	Inlined  []string  `json:"inlined_into,omitempty"`
	Calls    []Call    `json:"calls"` // the functions, the kernel first
	Occupied string    `json:"state"` // of the lane: "running", "ready", "waits …", "exited"
	Accesses []Access  `json:"accesses,omitempty"`
}

// Access is one that the lanes are about to make, of a warp that comes next.
type Access struct {
	Space      string `json:"space"`
	Bytes      int    `json:"bytes"`                // of a lane
	Lanes      int    `json:"lanes"`                // that make it
	Sectors    uint64 `json:"sectors,omitempty"`    // of 32 bytes of global memory that they touch
	Least      uint64 `json:"least,omitempty"`      // that so many bytes fit in
	Wavefronts uint64 `json:"wavefronts,omitempty"` // passes over the banks of shared memory
	Conflicts  uint64 `json:"bank_conflicts,omitempty"`
}

// accesses are those of the instruction at p. Those of a barrier's own memory are not counted as traffic.
func accesses(w *warp.Warp, p *warp.Point, active uint32) (all []Access) {
	if p.Site.Inst.Op == "mbarrier" {
		return nil
	}
	for i := range p.Touches {
		t := &p.Touches[i]
		m, space := t.Counts(w, active)
		if m.GlobalRequests+m.SharedRequests == 0 {
			continue
		}
		a := Access{Space: space.String(), Bytes: t.Access.Size, Lanes: bits.OnesCount32(active), Sectors: m.Sectors, Wavefronts: m.Wavefronts, Conflicts: m.SharedConflicts}
		if m.GlobalRequests > 0 {
			a.Least = min(m.Sectors, uint64(a.Lanes*a.Bytes+memory.SectorSize-1)/memory.SectorSize) // lanes may read the same
		}
		all = append(all, a)
	}
	return all
}

// text is what an access costs.
func (a *Access) text() string {
	each := fmt.Sprintf("%d lanes access %d bytes of %s memory each: ", a.Lanes, a.Bytes, a.Space)
	switch {
	case a.Wavefronts == 1:
		return each + "one pass over the banks"
	case a.Wavefronts > 1:
		return each + fmt.Sprintf("%d passes over the banks, %d of them for conflicts", a.Wavefronts, a.Conflicts)
	case a.Sectors == a.Least:
		return each + fmt.Sprintf("sectors: %d", a.Sectors)
	}
	return each + fmt.Sprintf("sectors: %d, where %d would hold them", a.Sectors, a.Least)
}

// Call is a function on the way to an instruction.
type Call struct {
	Function string `json:"function"`
	Line     int    `json:"ptx_line,omitempty"` // of the call
}

// stopped tells where the session is.
func (s *Session) stopped(cmd string) *Reply {
	st := &Stop{Reason: s.last.reason, Event: s.run.event, Ended: s.run.ended}
	if cmd == "start" || cmd == "restart" {
		st.Reason = "start"
	}
	if f := s.last.finding; f != nil {
		x := s.run.target.Finding(*f)
		st.Finding = &x
	}
	if r := s.run.result; s.run.ended && r != nil {
		st.Found, st.Output = r.Found, r.Output
		if r.Fault != nil {
			st.Fault = r.Fault.Name
		}
	}
	if s.w != nil {
		st.At = s.at(s.w)
	}
	return &Reply{OK: true, Cmd: cmd, Stop: st, Text: s.stopText(st)}
}

// at is where a warp is, by the lane in focus.
func (s *Session) at(w *warp.Warp) *At {
	p, mask, state := s.of(w, s.lane)
	a := &At{Block: w.CTA.Index, BlockID: w.CTA.Id, Warp: w.Id, Lane: s.lane, Thread: w.CTA.Launch.ThreadID(w.Id*simt.WarpSize + uint32(s.lane)),
		Mask: fmt.Sprintf("%08x", mask), Occupied: state}
	active := mask
	if w == s.run.w && p == s.run.p {
		active = p.Active(w)
		a.Accesses = accesses(w, p, active)
	}
	a.Active = fmt.Sprintf("%08x", active)
	a.PTXLine, a.Source = p.Site.Inst.Pos.Line, p.Site.Source()
	_, lines := s.run.target.PTX()
	a.PTX, a.Text = trimmed(lines, a.PTXLine), s.run.target.SourceLine(a.Source)
	a.Inlined = s.run.target.Inlined(a.PTXLine)
	for _, c := range p.Stack {
		a.Calls = append(a.Calls, Call{c.Func.Name, c.Line})
	}
	return a
}

func trimmed(lines []string, n int) string {
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[n-1])
}

// of is where a lane is: the instruction that comes next, the lanes that come to it together, and what the lane does.
func (s *Session) of(w *warp.Warp, lane int) (p *warp.Point, mask uint32, state string) {
	if w == s.run.w && w.Mask>>lane&1 != 0 {
		return s.run.p, w.Mask, "running"
	}
	p = s.point(w)
	switch {
	case w.Born()>>lane&1 == 0:
		return p, 0, "none"
	case w.Live()>>lane&1 == 0:
		return p, 0, "exited"
	}
	for _, part := range w.Parts() {
		if part.Mask>>lane&1 == 0 {
			continue
		}
		if part.Point != nil {
			p = part.Point
		}
		state = part.State
		if part.Bar >= 0 {
			state = fmt.Sprintf("waits at barrier %d", part.Bar)
		}
		return p, part.Mask, state
	}
	return p, 0, "waits to meet others of its warp"
}

func (s *Session) stopText(st *Stop) string {
	var b strings.Builder
	switch {
	case st.Finding != nil:
		fmt.Fprintf(&b, "%s: %s\n", st.Finding.Check, st.Finding.Message)
		if st.Finding.Space != "" {
			fmt.Fprintf(&b, "  %d bytes at %s %s; %s\n", st.Finding.Size, st.Finding.Space, st.Finding.Address, orNone(st.Finding.Allocation))
		}
	case st.Ended:
		fmt.Fprintf(&b, "the kernel has ended after %d instructions of warps: %s\n", st.Event, s.run.result.Summary())
		if st.Fault != "" {
			fmt.Fprintf(&b, "  by a fault: %s\n", st.Fault)
		}
		if st.Output != "" {
			fmt.Fprintf(&b, "  printed:\n%s\n", strings.TrimRight(st.Output, "\n"))
		}
		return b.String()
	case st.Reason == "exited":
		fmt.Fprintf(&b, "the lane, or its block, has come to its end; elsewhere\n")
	case st.Reason != "step" && st.Reason != "start" && st.Reason != "event":
		b.WriteString(st.Reason + "\n")
	}
	if st.At != nil {
		b.WriteString(st.At.text())
	}
	fmt.Fprintf(&b, "  event   %d\n", st.Event)
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "in no allocation"
	}
	return s
}

func (a *At) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "block %d warp %d lane %d, thread %d,%d,%d: %s\n", a.Block, a.Warp, a.Lane, a.Thread[0], a.Thread[1], a.Thread[2], a.Occupied)
	if a.Source != "" {
		fmt.Fprintf(&b, "  source  %s  %s\n", a.Source, a.Text)
	}
	for _, at := range a.Inlined {
		fmt.Fprintf(&b, "  inlined into %s\n", at)
	}
	fmt.Fprintf(&b, "  PTX     %d  %s\n", a.PTXLine, a.PTX)
	for i := len(a.Calls) - 1; i > 0; i-- {
		fmt.Fprintf(&b, "  in %s, called at PTX line %d by %s\n", a.Calls[i].Function, a.Calls[i].Line, a.Calls[i-1].Function)
	}
	fmt.Fprintf(&b, "  lanes   %s", a.Mask)
	if a.Active != a.Mask {
		fmt.Fprintf(&b, ", the predicate holds in %s", a.Active)
	}
	b.WriteByte('\n')
	for i := range a.Accesses {
		fmt.Fprintf(&b, "  memory  %s\n", a.Accesses[i].text())
	}
	return b.String()
}

// Lane is a lane of the warp in focus.
type Lane struct {
	Lane    int       `json:"lane"`
	Thread  [3]uint32 `json:"thread"`
	State   string    `json:"state"`
	PTXLine int       `json:"ptx_line,omitempty"`
	Source  string    `json:"source,omitempty"`
	Active  bool      `json:"active"` // it runs the next instruction, and its predicate holds
}

func (s *Session) lanes(context.Context, []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	r := &Reply{}
	var active uint32
	if s.w == s.run.w {
		active = s.run.p.Active(s.w)
	}
	for i := range simt.WarpSize {
		p, _, state := s.of(s.w, i)
		l := Lane{Lane: i, Thread: s.w.CTA.Launch.ThreadID(s.w.Id*simt.WarpSize + uint32(i)), State: state, Active: active>>i&1 != 0}
		if state != "exited" && state != "none" {
			l.PTXLine, l.Source = p.Site.Inst.Pos.Line, p.Site.Source()
		}
		r.Lanes = append(r.Lanes, l)
	}
	r.Text = laneText(r.Lanes)
	return r, nil
}

// laneText puts neighbours together that are alike.
func laneText(all []Lane) string {
	var b strings.Builder
	for i := 0; i < len(all); {
		from := i
		for i++; i < len(all) && all[i].State == all[from].State && all[i].PTXLine == all[from].PTXLine && all[i].Active == all[from].Active; i++ {
		}
		l, which := all[from], fmt.Sprint(all[from].Lane)
		if i-from > 1 {
			which = fmt.Sprintf("%d to %d", from, i-1)
		}
		fmt.Fprintf(&b, "  %-9s %s", which, l.State)
		if l.PTXLine > 0 {
			fmt.Fprintf(&b, " at %s", placeText(l.Source, l.PTXLine))
		}
		if l.State == "running" && !l.Active {
			b.WriteString(", whose predicate does not hold")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func placeText(source string, line int) string {
	if source == "" {
		return fmt.Sprintf("PTX line %d", line)
	}
	return fmt.Sprintf("%s, PTX line %d", source, line)
}

// Warp is a warp of the block in focus.
type Warp struct {
	Warp  uint32 `json:"warp"`
	Live  string `json:"live"` // lanes that have not exited
	Parts []Part `json:"parts"`
}

// Part is lanes that are at one place.
type Part struct {
	Mask    string `json:"mask"`
	State   string `json:"state"`
	PTXLine int    `json:"ptx_line"`
	Source  string `json:"source,omitempty"`
}

func (s *Session) warps(context.Context, []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	r := &Reply{}
	for _, w := range s.w.CTA.Warps() {
		r.Warps = append(r.Warps, s.warp(w))
	}
	var b strings.Builder
	for _, w := range r.Warps {
		mark := " "
		if w.Warp == s.w.Id {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s warp %d\n", mark, w.Warp)
		if len(w.Parts) == 0 {
			b.WriteString("    exited\n")
		}
		for _, p := range w.Parts {
			fmt.Fprintf(&b, "    %s %s at %s\n", p.Mask, p.State, placeText(p.Source, p.PTXLine))
		}
	}
	r.Text = b.String()
	return r, nil
}

// warp is a warp's lanes by where they are.
func (s *Session) warp(w *warp.Warp) Warp {
	out := Warp{Warp: w.Id, Live: fmt.Sprintf("%08x", w.Live()), Parts: []Part{}}
	for rest := w.Live(); rest != 0; {
		lane := lowest(rest)
		p, mask, state := s.of(w, lane)
		mask = mask&rest | 1<<lane
		if mask == 1<<lane { // those that wait to be met are told together
			for m := rest; m != 0; m &= m - 1 {
				if i := lowest(m); i != lane {
					if _, other, st := s.of(w, i); other == 0 && st == state {
						mask |= 1 << i
					}
				}
			}
		}
		out.Parts = append(out.Parts, Part{fmt.Sprintf("%08x", mask), state, p.Site.Inst.Pos.Line, p.Site.Source()})
		rest &^= mask
	}
	return out
}

// Block is a block that has begun.
type Block struct {
	Block int       `json:"block"` // in the order of the grid
	ID    [3]uint32 `json:"id"`
	State string    `json:"state"` // "running" or "ended"
	Warps int       `json:"warps"` // that have not exited
}

func (s *Session) blocks(context.Context, []string) (*Reply, error) {
	r := &Reply{Blocks: []Block{}}
	ended := 0
	var b strings.Builder
	for i, c := range s.run.blocks {
		if c == nil {
			continue
		}
		x := Block{Block: i, State: "ended"}
		if runs := s.runs(i); runs {
			x.State, x.ID, x.Warps = "running", c.Id, c.Alive
			fmt.Fprintf(&b, "  block %d, %d,%d,%d: %d warps have not exited\n", i, c.Id[0], c.Id[1], c.Id[2], c.Alive)
		} else {
			ended++
		}
		r.Blocks = append(r.Blocks, x)
	}
	fmt.Fprintf(&b, "%d have ended, %d of %d have not begun\n", ended, len(s.run.blocks)-len(r.Blocks), len(s.run.blocks))
	r.Text = b.String()
	return r, nil
}

// runs is whether a block has begun and not ended.
func (s *Session) runs(i int) bool {
	if i >= len(s.run.blocks) || s.run.ended {
		return false
	}
	c := s.run.blocks[i]
	return c != nil && c.Launch != nil && c.Index == i && c.Alive > 0
}

func (s *Session) setLane(_ context.Context, args []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	n, err := optional(args, 0, 0, 0, simt.WarpSize-1)
	if err != nil {
		return nil, err
	}
	if s.w.Born()>>n&1 == 0 {
		return nil, advice.Failf("lanes tells of them", "warp %d has no lane %d: the block has %d threads", s.w.Id, n, s.w.CTA.Launch.Threads)
	}
	s.lane = n
	return s.stopped("lane"), nil
}

func (s *Session) setWarp(_ context.Context, args []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	all := s.w.CTA.Warps()
	n, err := optional(args, 0, 0, 0, len(all)-1)
	if err != nil {
		return nil, err
	}
	s.look(all[n])
	return s.stopped("warp"), nil
}

func (s *Session) setBlock(_ context.Context, args []string) (*Reply, error) {
	n, err := optional(args, 0, 0, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	if !s.runs(n) {
		return nil, advice.Failf("blocks lists those that run", "block %d does not run now", n)
	}
	s.look(s.run.blocks[n].Warps()[0])
	return s.stopped("block"), nil
}

// look makes a warp the one in focus.
func (s *Session) look(w *warp.Warp) {
	s.w = w
	if w.Born()>>s.lane&1 == 0 {
		s.lane = 0
	}
}

// SourceLine is a line of a listing.
type SourceLine struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	Next bool   `json:"next,omitempty"` // what comes next is there
}

const listed = 5 // lines before and behind

func (s *Session) list(_ context.Context, args []string) (*Reply, error) {
	asPTX := len(args) > 0 && args[0] == "ptx"
	if asPTX {
		args = args[1:]
	}
	if s.run.p == nil {
		return nil, advice.Failf("restart begins again", "the kernel has run no instruction")
	}
	p := s.run.p
	if s.w != nil {
		p, _, _ = s.of(s.w, s.lane)
	}
	name, here := splitLine(p.Site.Source())
	lines := s.run.target.SourceLines(name)
	if asPTX || lines == nil {
		name, lines = s.run.target.PTX()
		here = p.Site.Inst.Pos.Line
	}
	if len(args) > 1 {
		return nil, advice.Failf("as in list 12 or list ptx 57", "list: %q is too much", args[1])
	}
	at, err := optional(args, 0, here, 1, len(lines))
	if err != nil {
		return nil, err
	}
	r := &Reply{Text: name + "\n"}
	for n := max(1, at-listed); n <= min(len(lines), at+listed); n++ {
		l := SourceLine{n, strings.TrimRight(lines[n-1], "\r"), n == here && s.w != nil}
		mark := " "
		if l.Next {
			mark = ">"
		}
		r.Source = append(r.Source, l)
		r.Text += strings.TrimRight(fmt.Sprintf("%s %*d  %s", mark, len(strconv.Itoa(len(lines))), n, strings.ReplaceAll(l.Text, "\t", "    ")), " ") + "\n"
	}
	return r, nil
}

// listFindings are those of all blocks that are known: of a launch that runs, those of the blocks that run.
func (s *Session) listFindings(context.Context, []string) (*Reply, error) {
	r := &Reply{Findings: []simrun.Finding{}}
	if s.run.ended && s.run.result != nil {
		r.Findings = s.run.result.Findings
	}
	for i := range s.run.blocks {
		if s.runs(i) {
			for _, f := range s.run.blocks[i].Findings {
				r.Findings = append(r.Findings, s.run.target.Finding(f))
			}
		}
	}
	for _, f := range r.Findings {
		r.Text += fmt.Sprintf("%s: %s, at %s\n", f.Check, f.Message, placeText(f.Source, f.Line))
	}
	if r.Text == "" {
		r.Text = "none in the blocks that run\n"
	}
	return r, nil
}
