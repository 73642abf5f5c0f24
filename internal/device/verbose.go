package device

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/ir"
)

// Printer is an observer that prints a line for each operation and copy as it runs:
//
//	warpline: cpu matmul f32[2,3] f32[3,4] -> f32[2,4], 12.3 us, backward, multiply (avx512)
//
// The time is that of the host's call. On a device that runs behind it, that is the time of the launch, unless
// [BlockingEnv] has it wait.
type Printer struct {
	Device string
	Level  string // of the processor, where that computes; "" elsewhere

	mu sync.Mutex
	w  io.Writer
}

// NewPrinter returns a printer for a device. A line is one call of Write.
func NewPrinter(w io.Writer, device, level string) *Printer {
	return &Printer{Device: device, Level: level, w: w}
}

// Observe prints an event of work. What a launch has of kernels is one line.
func (p *Printer) Observe(e *Event) {
	var what, by string
	switch {
	case e.Kind == KindCopy:
		what = fmt.Sprintf("copy %s of %d bytes", e.What, e.Bytes)
	case e.Kernel == nil || e.Step > 0: // the first piece of the work stands for the whole operation
		return
	default:
		what, by = opText(e.Kernel), p.kernels(e.Kernel)
	}
	line := fmt.Sprintf("warpline: %s %s, %.1f us", p.Device, what, float64(e.Took.Nanoseconds())/1e3)
	if e.Backward {
		line += ", backward"
	}
	if by != "" {
		line += ", " + by
	}
	if e.Err != nil {
		line += ", failed"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.w, line+"\n") // whoever reads along has no say in the work
}

// opText is an operation with its operands and results.
func opText(k *Kernel) string {
	if k.own != nil {
		return k.String()
	}
	return k.String() + " ->" + types(k.Out)
}

func types(list []*ir.Type) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(" " + t.String())
	}
	return b.String()
}

// kernels are the names of what computes: of each of the device's kernels once, or the engine's own word.
func (p *Printer) kernels(k *Kernel) string {
	var names []string
	for _, s := range k.Steps {
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	if s, ok := k.Impl.(fmt.Stringer); ok && len(names) == 0 {
		names = append(names, s.String())
	}
	text := strings.Join(names, " + ")
	if p.Level != "" {
		text = strings.TrimSpace(text + " (" + p.Level + ")")
	}
	return text
}
