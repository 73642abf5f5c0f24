package probe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/nvml"
)

// ChildCommand is the first argument of the processes that ask libraries, which may hang or crash; the second is the library:
// "nvml" or "cuda". Such a process calls Answer.
const ChildCommand = "doctor-probe"

// line is what a child writes: what it is at, before it calls the library; and at the end what it found.
type line struct {
	At   string       `json:"at,omitempty"`
	Card int          `json:"card,omitempty"`
	Of   int          `json:"of,omitempty"`
	NVML *doctor.NVML `json:"nvml,omitempty"`
	CUDA *doctor.CUDA `json:"cuda,omitempty"`
}

// Answer asks a library in this process, and writes lines of JSON for the one that started it.
func Answer(library string, w io.Writer) error {
	write := func(l line) error {
		b, err := json.Marshal(l)
		if err == nil {
			_, err = fmt.Fprintf(w, "\n%s\n", b) // the library may have left a line open
		}
		return err
	}
	at := func(l line) { _ = write(l) } // a parent that is gone needs nothing
	switch library {
	case "nvml":
		return write(line{NVML: answerNVML(at)})
	case "cuda":
		return write(line{CUDA: answerCUDA(at)})
	}
	return fmt.Errorf("no library %q", library)
}

func answerNVML(at func(line)) *doctor.NVML {
	out := &doctor.NVML{Child: doctor.Child{Asked: true}}
	at(line{At: "init"})
	lib, err := nvml.Open()
	if err != nil {
		var code nvml.Return
		out.Error = err.Error()
		if out.Missing = !errors.As(err, &code); !out.Missing {
			out.Code, out.Name, out.Error = int(code), code.String(), ""
		}
		return out
	}
	defer lib.Close()
	out.Path, out.Name = lib.Path, nvml.Success.String()
	out.Driver, out.CUDA = lib.Versions()
	n, err := lib.Count()
	if err != nil {
		out.Error = err.Error()
	}
	for i := range n {
		at(line{At: "card", Card: i, Of: n})
		out.Cards = append(out.Cards, cardOf(lib, i))
	}
	hold(lib, out.Cards)
	at(line{At: "peers"})
	for i := range n {
		for j := range n {
			if status, r := lib.Peer(i, j); i != j && r == nvml.Success {
				out.Peers = append(out.Peers, doctor.Peer{From: i, To: j, Status: status})
			}
		}
	}
	return out
}

// cardOf is all that the library tells of a card that is fit for a file: measured figures are finite.
func cardOf(lib *nvml.Library, i int) doctor.NVMLCard {
	d, h := lib.Read(i), lib.Health(i)
	c := doctor.NVMLCard{Index: i, Name: d.Name, UUID: d.UUID, Bus: d.Bus, Failed: d.Failed, Code: int(h.Code), Values: map[string]float64{}, Instances: len(d.Instances), Links: h.Links}
	for _, values := range []map[nvml.Key]float64{d.Values, h.Values} {
		for k, v := range values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				c.Values[string(k)] = v
			}
		}
	}
	for _, r := range d.Reasons {
		c.Reasons |= r.Bit
	}
	for _, p := range d.Processes {
		q := doctor.NVMLProcess{PID: p.PID}
		if p.Memory != nil {
			q.Memory = new(int64(*p.Memory))
		}
		c.Processes = append(c.Processes, q)
	}
	return c
}

// hold measures which share of a window power and heat held cards down that are at work.
func hold(lib *nvml.Library, cards []doctor.NVMLCard) {
	busy := func(c doctor.NVMLCard) bool { return c.Values[string(nvml.Utilization)] >= doctor.BusyPercent }
	if !slices.ContainsFunc(cards, busy) {
		return
	}
	start := time.Now()
	time.Sleep(doctor.HeldWindow)
	for _, c := range cards {
		if !busy(c) {
			continue
		}
		h, window := lib.Health(c.Index), time.Since(start).Seconds()
		for from, to := range map[nvml.Key]string{nvml.HeldByPower: doctor.HeldByPowerShare, nvml.HeldByHeat: doctor.HeldByHeatShare} {
			now, ok := h.Values[from]
			if before, had := c.Values[string(from)]; ok && had && now >= before {
				c.Values[to] = min((now-before)/window, 1)
			}
		}
	}
}

func answerCUDA(at func(line)) *doctor.CUDA {
	out := &doctor.CUDA{Child: doctor.Child{Asked: true}}
	at(line{At: "init"})
	api, source, err := libcuda.Open()
	out.Path, out.Version, out.Lacks = source.Path, source.Version, source.Missing
	if err != nil {
		var known *libcuda.Error
		out.Error, out.Missing = err.Error(), source.Path == ""
		if errors.As(err, &known) && known.Result != driver.Success {
			out.Code, out.Name, out.Error, out.Missing = int(known.Result), known.Result.String(), "", false
		} else if source.Version > 0 {
			out.Error = "" // it is too old, which its version tells
		}
		return out
	}
	out.Name = driver.Success.String()
	n, r := api.DeviceGetCount()
	if r != driver.Success {
		out.Code, out.Name = int(r), r.String()
	}
	for i := range n {
		at(line{At: "card", Card: i, Of: n})
		out.Cards = append(out.Cards, deviceOf(api, i))
	}
	return out
}

// deviceOf is what the driver tells of a card without a context on it.
func deviceOf(api *driver.API, i int) doctor.CUDACard {
	c := doctor.CUDACard{Index: i}
	d, r := api.DeviceGet(i)
	if r != driver.Success {
		c.Code = int(r)
		return c
	}
	var uuid [16]byte
	c.Name, r = api.DeviceGetName(d)
	c.Code = int(r)
	if uuid, r = api.DeviceGetUuid(d); r == driver.Success {
		c.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	}
	c.Bus, _ = api.DeviceGetPCIBusId(d)
	c.Memory, _ = api.DeviceTotalMem(d)
	for a, to := range map[driver.Attribute]*int{driver.ComputeMajor: &c.Compute[0], driver.ComputeMinor: &c.Compute[1], computeMode: &c.ComputeMode} {
		*to, _ = api.DeviceGetAttribute(a, d)
	}
	limited, _ := api.DeviceGetAttribute(kernelTimeout, d)
	integrated, _ := api.DeviceGetAttribute(driver.Integrated, d)
	c.Watchdog, c.Integrated = limited == 1, integrated == 1
	return c
}

// Attributes that nobody else asks for, by their numbers in cuda.h.
const (
	kernelTimeout driver.Attribute = 17
	computeMode   driver.Attribute = 20
)

func (p *prober) askNVML(ctx context.Context) {
	n := &p.facts.NVML
	last, end := p.ask(ctx, "nvml", "NVML")
	if last.NVML != nil {
		*n = *last.NVML
	}
	end(&n.Child)
	for i := range n.Cards {
		for j := range n.Cards[i].Processes {
			p.place(&n.Cards[i].Processes[j])
		}
	}
}

// place finds a process in this process' /proc, which in a container is not that of the driver.
func (p *prober) place(q *doctor.NVMLProcess) {
	dir := fmt.Sprintf("/proc/%d", q.PID)
	if q.Visible = p.there(dir); q.Visible {
		q.Command, q.Where = p.read(dir+"/comm"), containerOf(p.read(dir+"/cgroup"))
	}
}

func (p *prober) askCUDA(ctx context.Context) {
	c := &p.facts.CUDA
	last, end := p.ask(ctx, "cuda", "CUDA")
	if last.CUDA != nil {
		*c = *last.CUDA
	}
	end(&c.Child)
}

// longestLine is more than an answer takes.
const longestLine = 4 << 20

// ask starts a child and reads its lines up to a limit. end tells how it ended. A child that the kernel does not let end is
// left behind.
func (p *prober) ask(ctx context.Context, library, name string) (last line, end func(*doctor.Child)) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Executable, ChildCommand, library)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &limitedWriter{&said, 4 << 10}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return last, func(c *doctor.Child) { c.Asked, c.Error = true, err.Error() }
	}
	lines := make(chan line)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(stdout, longestLine)
		for {
			text, more, err := r.ReadLine()
			var l line
			if !more && json.Unmarshal(text, &l) == nil { // longer lines are no answer
				lines <- l
			}
			if err != nil {
				return
			}
		}
	}()
	var at line
	done := false
	for open := true; open && !done; {
		var l line
		select {
		case l, open = <-lines:
		case <-ctx.Done():
			done = true
			go drain(lines)
		}
		switch {
		case l.NVML != nil || l.CUDA != nil:
			last = l
		case l.At != "":
			at = l
			p.Say(words(name, l))
		}
	}
	err = wait(cmd)
	return last, func(c *doctor.Child) {
		c.Asked, c.TookMS, c.LimitS = true, time.Since(start).Milliseconds(), int(p.Limit.Seconds())
		if last.NVML != nil || last.CUDA != nil {
			return
		}
		c.At, c.AtCard = at.At, at.Card
		switch c.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded); {
		case c.TimedOut || signalled(err, c):
		case err != nil:
			c.Error = fmt.Sprintf("%v: %s", err, bytes.TrimSpace(said.Bytes()))
		}
	}
}

func words(name string, l line) string {
	if l.At == "card" {
		return fmt.Sprintf("%s: card %d of %d", name, l.Card+1, l.Of)
	}
	return name + ": " + l.At
}

func drain(lines <-chan line) {
	for range lines {
	}
}

// wait is Wait, but not for ever: a process that sleeps in the driver cannot be ended.
func wait(cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(5 * time.Second):
		return errors.New("it cannot be ended")
	}
}

// signalled notes the signal that ended a child.
func signalled(err error, c *doctor.Child) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		c.Signal = s.Signal().String()
	} else if exit.ExitCode() == 2 {
		c.Signal = "fault" // Go's runtime turns a fault in a library into that status
	}
	return c.Signal != ""
}

// limitedWriter keeps the first bytes of what is written.
type limitedWriter struct {
	w    *bytes.Buffer
	room int
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	n := min(len(b), l.room)
	l.w.Write(b[:n])
	l.room -= n
	return len(b), nil
}
