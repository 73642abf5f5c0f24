package kineto

import (
	"bytes"
	"encoding/json"
)

// Limits of what is kept of strings: hostile files have a new name in every event.
const (
	namesLimit     = 1 << 20
	nameBytesLimit = 48 << 20
)

// interner gives each distinct string a number; 0 is the empty one. Beyond its limits all strings are one.
type interner struct {
	ids   map[string]uint32
	names []string
	bytes int
	over  bool
}

const beyond = "(one of too many names)"

func newInterner() *interner {
	return &interner{ids: map[string]uint32{"": 0}, names: []string{""}}
}

// id is the number of the string whose JSON stands in b, without its quotes.
func (t *interner) id(b []byte) uint32 {
	if id, ok := t.ids[string(b)]; ok {
		return id
	}
	if len(t.names) >= namesLimit || t.bytes+len(b) > nameBytesLimit {
		if !t.over {
			t.over = true
			t.ids[beyond] = uint32(len(t.names))
			t.names = append(t.names, beyond)
		}
		return t.ids[beyond]
	}
	id := uint32(len(t.names))
	key := string(b)
	t.bytes += len(key)
	t.ids[key] = id
	t.names = append(t.names, unescape(b, key))
	return id
}

// unescape is the text of a string's JSON; of one that is not JSON, what stands there.
func unescape(b []byte, raw string) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return raw
	}
	quoted := append(append([]byte{'"'}, b...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return raw
	}
	return s
}
