package vetpy

import (
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// traits are what is known of a value. Where the program has several ways to it, those of all.
type traits uint32

const (
	isModule    traits = 1 << iota // a torch.nn.Module
	isOptimizer                    //
	isScheduler                    // of learning rates
	isScaler                       // of losses
	isLoader                       // gives batches
	isSampler                      // a distributed sampler
	isCriterion                    // a loss as a module or a function
	isGraph                        // a tensor that carries its graph
	isTensor                       // a tensor without one
	isBatch                        // of a loader
	isHost                         // a tensor that lies on the host for sure
	isMoved                        // was moved to a device
	isPinned                       //
	isList                         // a list or a dictionary
	isNumber                       // of the host
	isClock                        // a time of the host's clock
	isEngine                       // steps by itself: DeepSpeed, Lightning's manual optimization
	isOutput                       // what a module gave: may carry its graph, and .loss
	isSoftmax                      // probabilities: of softmax
	isSigmoid                      // of sigmoid
	isFrozen                       // made without recording
	isSpan                         // a duration by the host's clock
	isCopied                       // was copied to a device by itself; of a list: each of its elements was
	isElement                      // of what nobody knows, that a loop goes over: it may be a batch
	isParameter                    // a torch.nn.Parameter
	isPlaced                       // a module that was moved by itself, and moves nothing that it is given
)

// value is what is known of a value. It does not change.
type value struct {
	traits traits
	path   string         // of what made it: torch.optim.Adam; or, of a name that was imported, what it names
	call   *pysyntax.Call // that made it
	elems  []*value       // of a tuple
	fn     *function
	class  *class
	self   *value            // of a bound method
	fields map[string]*value // of an instance of a class of the file, which are shared by all who hold it
	keys   map[string]*value // of a dictionary, as far as they are written out; it does not change
	last   *value            // what was appended to a list
	gives  *value            // what a loop over a generator gets
	space  *scope            // of a module of the program's own
	text   string            // of a condition that has a name, as it is written, and of a string
	names  []string          // of variables that went into it, at most maxNames
	loop   *loop             // in which it was made; nil outside of loops
	turn   int               // of a loop, in which it was made
	arm    *arm              // in which a variable got it
}

// loader is the call that made the loader of a batch; nil of other values.
func (v *value) loader() *pysyntax.Call {
	if v.is(isBatch) {
		return v.call
	}
	return nil
}

const (
	maxNames = 24
	maxKeys  = 32
)

var unknown = &value{}

// cut tells whether a value's graph was taken away for sure.
func (v *value) cut() bool { return strings.HasPrefix(v.path, ".") && !carries(v) }

func (s traits) is(t traits) bool { return s&t != 0 }

func (v *value) is(t traits) bool { return v.traits&t != 0 }

// with is the value with further traits.
func (v *value) with(t traits) *value {
	c := *v
	c.traits |= t
	return &c
}

// without is the value with fewer traits.
func (v *value) without(t traits) *value {
	c := *v
	c.traits &^= t
	return &c
}

// weight is the weight of a criterion, which is a tensor that lies on the host; unknown if it is moved with it, or has none.
func (v *value) weight() *value {
	if v.is(isCriterion) && !v.is(isMoved) && v.last != nil {
		return v.last
	}
	return unknown
}

// where is a value that lies where a module was moved to.
func (v *value) where() *value {
	if v.is(isPlaced) {
		return &value{traits: isTensor | isMoved}
	}
	return unknown
}

// other tells whether a module is another one than this was.
func (v *value) other(m *value) bool {
	return v != nil && v.is(isModule) && m.is(isModule) && v.call != nil && m.call != nil && v.call != m.call && m.fields != nil
}

// having is a dictionary with one more key.
func (v *value) having(key string, u *value) *value {
	c := *v
	c.keys = map[string]*value{key: u}
	for k, old := range v.keys {
		if k != key && len(c.keys) < maxKeys {
			c.keys[k] = old
		}
	}
	return &c
}

// parts are what items or values gives of a dictionary, or of a batch; nil if it is neither.
func (v *value) parts(items bool) *value {
	var all *value
	switch {
	case v.is(isBatch):
		all = v
	case v.is(isList) && v.elems != nil:
		for _, e := range v.elems {
			all = merge(all, e)
		}
	case v.is(isList) && v.last != nil:
		all = v.last
	default:
		return nil
	}
	if items {
		all = &value{elems: []*value{{traits: isNumber}, all}}
	}
	return &value{gives: all}
}

// got is what a dictionary has under the key of a call; nil if that is not known.
func (v *value) got(x *pysyntax.Call) *value {
	s, ok := arg(x, "", 0).(*pysyntax.String)
	if !ok {
		return nil
	}
	return v.keys[s.Value]
}

// everywhere are the traits that count only where a value has them on all ways: a model may give scores in training and probabilities
// in evaluation.
const everywhere = isSoftmax | isSigmoid

// merge is what is known where either may be.
func merge(a, b *value) *value {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	}
	c := *a
	c.traits |= b.traits
	c.traits &^= everywhere &^ (a.traits & b.traits)
	c.names = join(a.names, b.names)
	switch {
	case (a.path == "torch.device" || b.path == "torch.device") && a.call != b.call:
		c.path, c.call = "torch.device", nil // which of them is not known
	case a.path == b.path:
	case a.cut() || b.cut():
		c.path = "" // cut on one way only
	case c.path == "":
		c.path, c.call = b.path, b.call
	}
	if c.fn == nil {
		c.fn = b.fn
	}
	if c.class == nil {
		c.class, c.fields = b.class, b.fields
	}
	if c.elems == nil {
		c.elems = b.elems
	}
	if c.keys == nil {
		c.keys = b.keys
	} else if b.keys != nil {
		c.keys = merged(a.keys, b.keys)
	}
	if c.last = b.last; c.last == nil {
		c.last = a.last
	}
	if c.gives == nil {
		c.gives = b.gives
	}
	if a.text != b.text {
		c.text = ""
	}
	return &c
}

// merged are dictionaries of which either may be.
func merged(a, b map[string]*value) map[string]*value {
	all := maps.Clone(a)
	for k, v := range b {
		all[k] = merge(all[k], v)
	}
	return all
}

// join has the names of both.
func join(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	for _, n := range b {
		if len(a) >= maxNames {
			break
		}
		if !slices.Contains(a, n) {
			a = append(a[:len(a):len(a)], n)
		}
	}
	return a
}

// function is a def of the file.
type function struct {
	node  *pysyntax.Function
	class *class
	scope *scope // around it
	ran   bool   // was entered from somewhere
	alone bool   // by nobody in the file
}

// class is a class of the file.
type class struct {
	node     *pysyntax.Class
	methods  map[string]*function
	bases    []string // as canonical names
	module   bool     // is a torch.nn.Module
	lighting bool     // is Lightning's: its training_step is called in a loop
	dataset  bool
	ran      bool
	instance *value
}

// scope has the variables of a function or of the file.
type scope struct {
	parent  *scope
	vars    map[string]*value
	globals map[string]bool
}

func (s *scope) get(name string) *value {
	for t := s; t != nil; t = t.parent {
		if v := t.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

func (s *scope) set(name string, v *value) {
	t := s
	if s.globals[name] {
		for t.parent != nil {
			t = t.parent
		}
	}
	t.vars[name] = v
}

// mergeFrom adds what another way knows of the variables.
func (s *scope) mergeFrom(other map[string]*value) {
	for k, v := range other {
		if s.vars[k] != v {
			s.vars[k] = merge(s.vars[k], v)
		}
	}
}
