package device

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
)

// AllocEnv is the environment variable with the text that [ParseConf] reads.
const AllocEnv = "WARPLINE_ALLOC_CONF"

// ParseConf reads a configuration of an allocator in the form of PyTorch's PYTORCH_ALLOC_CONF: keys with values, as
// "expandable_segments:True,roundup_power2_divisions:[256:1,512:2,>:8]". Blanks do not matter, and truth values are True and
// False. A key that this allocator has no use for may have PyTorch's default; another value is an error that says why.
func ParseConf(text string) (Conf, error) {
	c := Conf{Text: text}
	given := map[string]bool{}
	for _, part := range splitConf(strings.Map(dropBlank, text)) {
		key, value, ok := strings.Cut(part, ":")
		if part == "" {
			continue
		}
		set, known := confKeys[key]
		switch {
		case !known:
			return Conf{}, unknownConf(key)
		case !ok || value == "":
			return Conf{}, confError(key, value, errors.New("there is no value: write "+key+":VALUE"))
		case given[key]:
			return Conf{}, confError(key, value, errors.New("the key is there twice"))
		}
		given[key] = true
		if err := set(&c, value); err != nil {
			return Conf{}, confError(key, value, err)
		}
	}
	if err := c.Check(); err != nil {
		return Conf{}, fmt.Errorf("allocator setting %q: %w", text, err)
	}
	return c, nil
}

// With is c with another value of a key, in its text too. It is an error where [ParseConf] would refuse that text.
func (c Conf) With(key, value string) (Conf, error) {
	var parts []string
	for _, part := range splitConf(strings.Map(dropBlank, c.Text)) {
		if k, _, _ := strings.Cut(part, ":"); part != "" && k != key {
			parts = append(parts, part)
		}
	}
	return ParseConf(strings.Join(append(parts, key+":"+value), ","))
}

func confError(key, value string, err error) error {
	return fmt.Errorf("allocator setting %s:%s: %w", key, value, err)
}

func unknownConf(key string) error {
	keys := slices.Sorted(maps.Keys(confKeys))
	return fmt.Errorf("allocator setting %q is unknown; %sthere are %s", key, advice.Meant(key, keys), strings.Join(keys, ", "))
}

func dropBlank(r rune) rune {
	if r == ' ' || r == '\t' || r == '\n' || r == '\r' {
		return -1
	}
	return r
}

// splitConf cuts a text at its commas, but for those in brackets.
func splitConf(s string) (parts []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, s[from:])
}

// confKeys are PyTorch's keys, with what sets them.
var confKeys = map[string]func(c *Conf, value string) error{
	"max_split_size_mb":            megabytes(func(c *Conf) *int64 { return &c.MaxSplit }),
	"max_non_split_rounding_mb":    megabytes(func(c *Conf) *int64 { return &c.MaxNonSplitRounding }),
	"large_segment_size_mb":        megabytes(func(c *Conf) *int64 { return &c.LargeSegment }),
	"roundup_power2_divisions":     confDivisions,
	"garbage_collection_threshold": confThreshold,
	"expandable_segments": func(c *Conf, v string) (err error) {
		c.Expandable, err = truth(v)
		return err
	},
	"expandable_segments_reserve": confReserve,
	"per_process_memory_fraction": confFraction,

	"backend":                              only("native", "memory comes from this cache; the driver's own pool is not used"),
	"release_lock_on_cudamalloc":           only("False", lockWhy),
	"release_lock_on_hipmalloc":            only("False", lockWhy),
	"throw_on_cudamalloc_oom":              only("False", "memory that the device refuses is an error that the program can catch in any case"),
	"pinned_use_cuda_host_register":        only("False", pinnedWhy),
	"pinned_use_hip_host_register":         only("False", pinnedWhy),
	"pinned_max_round_threshold_mb":        only("", pinnedWhy),
	"pinned_max_cached_size_mb":            only("", pinnedWhy),
	"pinned_num_register_threads":          only("1", pinnedWhy),
	"pinned_use_background_threads":        only("False", pinnedWhy),
	"pinned_free_catch_all":                only("False", pinnedWhy),
	"pinned_reserve_segment_size_mb":       only("", pinnedWhy),
	"graph_capture_record_stream_reuse":    only("False", "blocks that several queues use while a step is recorded stay until its end"),
	"expandable_segments_reserve_by_class": only("", "all expandable segments reserve as many addresses: expandable_segments_reserve says how many"),
}

// Why keys have no meaning here.
const (
	pinnedWhy = "pinned memory of the host is kept by the engine, in pieces of one size, and not by this allocator"
	lockWhy   = "events of memory are told in the order in which it changes hands, which the lock keeps"
)

// only is a key without a meaning here, but for one value that asks for what is done in any case.
func only(value, why string) func(*Conf, string) error {
	refused := errors.New(why)
	if value != "" {
		refused = fmt.Errorf("only %s will do: %s", value, why)
	}
	return func(_ *Conf, v string) error {
		if v == value {
			return nil
		}
		return refused
	}
}

func truth(v string) (bool, error) {
	switch v {
	case "True":
		return true, nil
	case "False":
		return false, nil
	}
	return false, errors.New("want True or False")
}

// megabytes is a key whose value is a number of MiB, of at least those of a large segment.
func megabytes(of func(*Conf) *int64) func(*Conf, string) error {
	return func(c *Conf, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n <= 0 || n > maxRequest>>20 {
			return errors.New("want a number of MiB above 0")
		}
		*of(c) = n << 20
		return nil
	}
}

func confThreshold(c *Conf, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f > 0 && f < 1) {
		return errors.New("want a number between 0 and 1, which both are too far")
	}
	c.GCThreshold = f
	return nil
}

func confFraction(c *Conf, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f > 0 && f <= 1) {
		return errors.New("want a part of the device's memory, above 0 and up to 1")
	}
	c.Fraction = f
	return nil
}

// confReserve takes a part of the device's memory, or an amount: "0.5", "40G".
func confReserve(c *Conf, v string) error {
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		if !(f > 0 && f <= 1) {
			return errors.New("want a part of the device's memory, above 0 and up to 1, or an amount like 40G")
		}
		c.ReservePart = f
		return nil
	}
	unit := strings.IndexByte("KMGT", v[len(v)-1])
	n, err := strconv.ParseInt(v[:len(v)-1], 10, 64)
	if unit < 0 || err != nil || n <= 0 || n > maxRequest>>(10*(unit+1)) {
		return errors.New("want a part of the device's memory, above 0 and up to 1, or an amount like 40G: a number with K, M, G or T")
	}
	c.Reserve = n << (10 * (unit + 1))
	return nil
}

// confDivisions takes a number for all sizes, or a list by size in MiB: the first size's number is also that of smaller ones, and
// that of > is for all beyond the last size.
func confDivisions(c *Conf, v string) error {
	list, ok := strings.CutPrefix(v, "[")
	if !ok {
		d, err := divisor(v)
		c.Divisions = UniformDivisions(d)
		return err
	}
	if list, ok = strings.CutSuffix(list, "]"); !ok || strings.ContainsAny(list, "[]") {
		return errors.New("want a list in one pair of brackets")
	}
	next, ended := 0, false
	for i, entry := range strings.Split(list, ",") {
		size, number, _ := strings.Cut(entry, ":")
		d, err := divisor(number)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		from, to := next, len(c.Divisions)
		if size != ">" {
			if from, err = bucket(size); err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			to = from + 1
		}
		if from < next || ended {
			return fmt.Errorf("%s is out of order: want sizes that grow, and > at the end", entry)
		}
		ended = size == ">"
		if i == 0 {
			from = 0
		}
		for next = from; next < to; next++ {
			c.Divisions[next] = d
		}
	}
	return nil
}

func divisor(v string) (int64, error) {
	d, err := strconv.ParseInt(v, 10, 64)
	if err != nil || d < 0 || d&(d-1) != 0 {
		return 0, errors.New("want a power of two, or 0 for none")
	}
	return d, nil
}

// bucket is the place of a size in [Conf.Divisions].
func bucket(size string) (int, error) {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n <= 0 || n&(n-1) != 0 {
		return 0, errors.New("want a size in MiB that is a power of two, or > for all beyond the last")
	}
	return min(bits.Len64(uint64(n))-1, len(Conf{}.Divisions)-1), nil
}
