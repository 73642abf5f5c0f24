package device

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Name says which device is meant: "cpu", "cuda", "cuda:1", "null:0", "null:a100-80", "sim:a100-80x4", "sim:a100-80x4:2".
// It is kind, optionally a card with a number of devices, optionally an index; a missing index is 0. A Name needs no
// device to be there. Names are comparable.
type Name struct {
	Kind  string // of engine
	Card  string // what a planned or simulated device imitates; "" is the engine's choice
	Count int    // devices that exist side by side; 0 when the name does not say
	Index int
}

// String is the canonical form: without an index for the CPU and for index 0 of a card.
func (n Name) String() string {
	s := n.Kind
	if n.Card != "" {
		s += ":" + n.Card
	}
	if n.Count > 0 {
		s += "x" + strconv.Itoa(n.Count)
	}
	if n.Index > 0 || n.Card == "" && n.Kind != "cpu" {
		s += ":" + strconv.Itoa(n.Index)
	}
	return s
}

// Engine opens the devices of a kind.
type Engine struct {
	Cards []string   // the cards it can imitate
	Told  []string   // of these, those that errors list; nil: all
	Rank  int        // the higher, the better a choice when the user names none; 0: never
	Count func() int // devices that are here; nil: one
	Open  func(Name) (Device, error)
}

// maxIndex bounds counts and indices in names.
const maxIndex = 1 << 16

var registry = struct {
	sync.Mutex
	engines map[string]Engine
	devices map[Name]*opening
}{engines: map[string]Engine{}, devices: map[Name]*opening{}}

// opening is a device, or one that a goroutine is about to open.
type opening struct {
	sync.Mutex
	dev Device
}

// Register makes an engine known under a kind. Engines call it when the program starts; it panics if the kind is taken.
func Register(kind string, e Engine) {
	registry.Lock()
	defer registry.Unlock()
	if _, ok := registry.engines[kind]; ok {
		panic(fmt.Sprintf("device: the kind %q is registered twice", kind))
	}
	registry.engines[kind] = e
}

// Kinds returns the kinds of the registered engines, sorted.
func Kinds() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Keys(registry.engines))
}

// Known returns names that [ParseName] takes, one for each kind and card.
func Known() (names []string) {
	for _, kind := range Kinds() {
		e, _ := engine(kind)
		names = append(names, Name{Kind: kind}.String())
		for _, c := range e.Cards {
			names = append(names, Name{Kind: kind, Card: c}.String())
		}
	}
	return names
}

func engine(kind string) (Engine, bool) {
	registry.Lock()
	defer registry.Unlock()
	e, ok := registry.engines[kind]
	return e, ok
}

// ParseName reads a name. The kind and the card must be registered ones; whether the device is there shows on Open.
func ParseName(s string) (Name, error) {
	kind, rest, more := strings.Cut(s, ":")
	e, ok := engine(kind)
	if !ok {
		return Name{}, fmt.Errorf("device %q: there is no kind %q; have %s", s, kind, strings.Join(Kinds(), ", "))
	}
	n := Name{Kind: kind}
	if !more {
		return n, nil
	}
	head, last, two := strings.Cut(rest, ":")
	if i, err := number(head); err == nil && !two {
		n.Index = i
		return n, n.check(s)
	}
	if n.Card, n.Count = e.card(head); n.Card == "" {
		return Name{}, fmt.Errorf("device %q: %s", s, e.missing(kind, head))
	}
	if two {
		i, err := number(last)
		if err != nil {
			return Name{}, fmt.Errorf("device %q: %q is no index", s, last)
		}
		n.Index = i
	}
	return n, n.check(s)
}

func (n Name) check(s string) error {
	switch {
	case n.Kind == "cpu" && n.Index > 0:
		return fmt.Errorf("device %q: there is one cpu; write \"cpu\"", s)
	case n.Count > 0 && n.Index >= n.Count:
		return fmt.Errorf("device %q: index %d of %d devices", s, n.Index, n.Count)
	}
	return nil
}

// card splits "a100-80x4" into a card of the engine and a count, which is 0 when there is none.
func (e Engine) card(s string) (card string, count int) {
	if slices.Contains(e.Cards, s) {
		return s, 0
	}
	i := strings.LastIndexByte(s, 'x')
	if i < 0 || !slices.Contains(e.Cards, s[:i]) {
		return "", 0
	}
	if n, err := number(s[i+1:]); err == nil && n > 0 {
		return s[:i], n
	}
	return "", 0
}

func (e Engine) missing(kind, card string) string {
	if len(e.Cards) == 0 {
		return fmt.Sprintf("%q is no index, and %s has no cards; write %q", card, kind, kind+":0")
	}
	told := e.Told
	if told == nil {
		told = e.Cards
	}
	return fmt.Sprintf("there is no card %q; have %s", card, strings.Join(told, ", "))
}

// number reads a plain decimal number below maxIndex.
func number(s string) (int, error) {
	i, err := strconv.ParseUint(s, 10, 32)
	if err != nil || i >= maxIndex {
		return 0, fmt.Errorf("%q is no number below %d", s, maxIndex)
	}
	return int(i), nil
}

// Open returns the device of a name and the name's canonical form: the same device for the same canonical name, for as
// long as the process runs. Callers share it, and do not close it. A device that failed to open is tried again by the
// next call.
func Open(name string) (Device, string, error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, "", err
	}
	d, err := n.Open()
	return d, n.String(), err
}

// preferred returns the kinds worth trying when the user names no device, best first.
func preferred() []string {
	registry.Lock()
	defer registry.Unlock()
	var kinds []string
	for kind, e := range registry.engines {
		if e.Rank > 0 {
			kinds = append(kinds, kind)
		}
	}
	sorting.By(kinds, func(a, b string) int { return cmp.Compare(registry.engines[b].Rank, registry.engines[a].Rank) })
	return kinds
}

// Here returns the names of the devices that are here and worth trying, best first.
func Here() []string {
	var names []string
	for _, kind := range preferred() {
		e, _ := engine(kind)
		n := 1
		if e.Count != nil {
			n = e.Count()
		}
		for i := range n {
			names = append(names, Name{Kind: kind, Index: i}.String())
		}
	}
	return names
}

// Open returns the device, as the function Open does.
func (n Name) Open() (Device, error) {
	e, ok := engine(n.Kind)
	if !ok {
		return nil, fmt.Errorf("device %s: there is no kind %q; have %s", n, n.Kind, strings.Join(Kinds(), ", "))
	}
	if _, err := FromEnvironment(); err != nil {
		return nil, fmt.Errorf("device %s: %w", n, err)
	}
	registry.Lock()
	o := registry.devices[n]
	if o == nil {
		o = new(opening)
		registry.devices[n] = o
	}
	registry.Unlock()
	o.Lock()
	defer o.Unlock()
	if o.dev != nil {
		return o.dev, nil
	}
	d, err := e.Open(n)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", n, err)
	}
	o.dev = d
	return d, nil
}
