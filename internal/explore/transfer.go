package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Move is copies of tensors of float32 between host and device.
type Move struct {
	Card        string
	Tensors     []string // as in batch=32x3x224x224
	OnDevice    []string // of them there before; the others are on the host
	Move        []string // of them, those that are not there already
	ToHost      bool     // else to the device
	Pinned      bool     // host memory is
	NonBlocking bool     // the host goes on
}

// Transfer is what they come to.
type Transfer struct {
	Card    string   `json:"card"`
	Tensors []Moved  `json:"tensors"`
	Device  []string `json:"on_device"` // afterwards

	HostBytes   int64   `json:"host_bytes"`
	DeviceBytes int64   `json:"device_bytes"`
	TotalBytes  int64   `json:"total_bytes"`
	MovedBytes  int64   `json:"moved_bytes"`
	LinkGBps    float64 `json:"link_gbps"` // GB/s, powers of ten
	Seconds     float64 `json:"seconds"`   // of the copies, one after the other
	HostSeconds float64 `json:"host_seconds"`
	Memory      int64   `json:"device_memory_bytes"`
	Fits        bool    `json:"fits"`
	MemoryRatio float64 `json:"device_memory_over_link"` // how much quicker the card reads its own memory

	Go      []string `json:"go"` // the same as a program
	PyTorch []string `json:"pytorch"`
	Error   *Mixed   `json:"error"` // of an operation on the first two tensors, where they are apart; null: they are together
	Note    string   `json:"note"`
}

// Moved is a tensor, and its copy.
type Moved struct {
	Name    string  `json:"name"`
	Shape   []int64 `json:"shape"`
	Bytes   int64   `json:"bytes"`
	At      string  `json:"at"` // "host" or "device", afterwards
	Moved   bool    `json:"moved"`
	Seconds float64 `json:"seconds"`
}

// Mixed is what an operation on two devices says.
type Mixed struct {
	Go      string `json:"go"`
	PyTorch string `json:"pytorch"`
}

// The places of a tensor.
const (
	host   = "host"
	device = "device"
)

// mostTensors is how many are drawn.
const mostTensors = 16

// NewTransfer computes copies.
func NewTransfer(m Move) (*Transfer, error) {
	c, err := card(m.Card)
	if err != nil {
		return nil, err
	}
	x := &Transfer{Card: c.Name, LinkGBps: estimate.Link(c, m.Pinned) / 1e9, Memory: c.Memory, MemoryRatio: 1e9 * float64(c.Bandwidth) / estimate.Link(c, m.Pinned), Device: []string{}, Note: Modelled + "; link: " + cards.LinkSource}
	if len(m.Tensors) < 1 || len(m.Tensors) > mostTensors {
		return nil, advice.Failf("as in --tensor weight=512x512", "there are %d tensors, of 1 to %d", len(m.Tensors), mostTensors)
	}
	for _, text := range m.Tensors {
		if err := x.add(text, &m); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Concat(m.OnDevice, m.Move) {
		if x.find(name) == nil {
			return nil, advice.Failf("tensors are "+strings.Join(x.names(), ", "), "there is no tensor %q", name)
		}
	}
	x.copy(c, &m)
	x.total()
	x.write(&m)
	return x, x.operate(c)
}

// name is what a program may call a value.
var name = regexp.MustCompile(`^[a-z][a-zA-Z0-9]{0,15}$`)

func (x *Transfer) add(text string, m *Move) error {
	word, sizes, _ := strings.Cut(text, "=")
	if !name.MatchString(word) || x.find(word) != nil {
		return advice.Failf("names begin with a letter of a to z and differ, as in weight=512x512", "%q is no tensor", text)
	}
	shape, elements, err := ParseShape(sizes)
	if err != nil {
		return err
	}
	t := Moved{Name: word, Shape: shape, Bytes: 4 * elements, At: host}
	if slices.Contains(m.OnDevice, word) {
		t.At = device
	}
	x.Tensors = append(x.Tensors, t)
	return nil
}

func (x *Transfer) find(name string) *Moved {
	for i := range x.Tensors {
		if x.Tensors[i].Name == name {
			return &x.Tensors[i]
		}
	}
	return nil
}

func (x *Transfer) names() (list []string) {
	for _, t := range x.Tensors {
		list = append(list, t.Name)
	}
	return list
}

// copy moves what is to be moved. Who does not wait is held for the call alone, but only pinned memory can be read meanwhile: other
// memory is staged first.
func (x *Transfer) copy(c *cards.Card, m *Move) {
	to := device
	if m.ToHost {
		to = host
	}
	for i := range x.Tensors {
		t := &x.Tensors[i]
		if !slices.Contains(m.Move, t.Name) || t.At == to {
			continue
		}
		t.At, t.Moved, t.Seconds = to, true, estimate.Copy(c, t.Bytes, m.Pinned)
		x.MovedBytes += t.Bytes
		x.Seconds += t.Seconds
		if m.NonBlocking && m.Pinned {
			x.HostSeconds += estimate.PerCall
		} else {
			x.HostSeconds += estimate.PerCall + t.Seconds
		}
	}
}

func (x *Transfer) total() {
	for _, t := range x.Tensors {
		if t.At == device {
			x.DeviceBytes += t.Bytes
			x.Device = append(x.Device, t.Name)
		} else {
			x.HostBytes += t.Bytes
		}
	}
	x.TotalBytes = x.HostBytes + x.DeviceBytes
	x.Fits = x.DeviceBytes <= x.Memory-cards.Context
}

// write is the copies as lines of programs.
func (x *Transfer) write(m *Move) {
	x.Go, x.PyTorch = []string{}, []string{}
	for _, t := range x.Tensors {
		if !t.Moved {
			continue
		}
		to, torch, options := "gpu", "'cuda'", ""
		if m.ToHost {
			to, torch = "cpu", "'cpu'"
		}
		if m.NonBlocking {
			options = ", non_blocking=True"
		}
		from := t.Name
		if m.Pinned && !m.ToHost {
			from += ".pin_memory()"
		}
		x.Go = append(x.Go, fmt.Sprintf("%s = %s.To(%s)  // %s, %s", t.Name, t.Name, to, render.Bytes(t.Bytes), span(t.Seconds)))
		x.PyTorch = append(x.PyTorch, fmt.Sprintf("%s = %s.to(%s%s)  # %s, %s", t.Name, from, torch, options, render.Bytes(t.Bytes), span(t.Seconds)))
	}
}

// ours is what a message of an error says of this package: the strides of its views, and the place.
var ours = regexp.MustCompile(`:0(,0)*| at [\w./-]+\.go:\d+`)

// operate multiplies the first two tensors where they are, and keeps what it says if they are apart. Nothing is allocated: the one is a
// view of a number, the other is of a card that computes nothing.
func (x *Transfer) operate(c *cards.Card) error {
	if len(x.Tensors) < 2 || x.Tensors[0].At == x.Tensors[1].At {
		return nil
	}
	cpu, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	gpu, err := tensor.Open("null:" + c.Name)
	if err != nil {
		return err
	}
	_, err = tensor.Try(cpu, func(here *tensor.Env) *tensor.Tensor {
		var operands [2]*tensor.Tensor
		for i := range operands {
			env := here
			if x.Tensors[i].At == device {
				env = gpu
			}
			var shape []int
			for _, n := range x.Tensors[i].Shape {
				shape = append(shape, int(n))
			}
			operands[i] = env.Zeros(1).Expand(shape...)
		}
		return operands[0].MatMul(operands[1])
	})
	if err == nil {
		return nil
	}
	x.Error = &Mixed{strings.ReplaceAll(ours.ReplaceAllString(err.Error(), ""), "null:"+c.Name, "cuda:0"),
		"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"}
	return nil
}

// Text is the same for people.
func (x *Transfer) Text(width int) string {
	t := render.Table{Header: []string{"tensor", "shape", "bytes", "at", "copy"}, Right: []bool{false, false, true, false, true}}
	for _, m := range x.Tensors {
		took := "–"
		if m.Moved {
			took = span(m.Seconds)
		}
		t.Rows = append(t.Rows, []string{m.Name, strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Shape), " ", "×"), "[]"), fmt.Sprint(m.Bytes), m.At, took})
	}
	s := fmt.Sprintf("%s\nhost %d bytes, device %d bytes of %d; %d moved at %.4g GB/s in %s, of which the host is held %s\n",
		t.String(width), x.HostBytes, x.DeviceBytes, x.Memory, x.MovedBytes, x.LinkGBps, span(x.Seconds), span(x.HostSeconds))
	for _, line := range slices.Concat(x.Go, x.PyTorch) {
		s += "  " + line + "\n"
	}
	if x.Error != nil {
		s += "the first two are apart: " + x.Error.Go + "\n"
	}
	return s + x.Note + "\n"
}
