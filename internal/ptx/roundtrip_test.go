package ptx

import (
	"reflect"
	"testing"
)

// withoutPos clears every Pos that v reaches, so that DeepEqual compares meaning alone.
func withoutPos(v any) { clearPos(reflect.ValueOf(v), map[uintptr]bool{}) }

func clearPos(v reflect.Value, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		clearPos(v.Elem(), seen)
	case reflect.Interface:
		clearPos(v.Elem(), seen)
	case reflect.Slice:
		for i := range v.Len() {
			clearPos(v.Index(i), seen)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Pos]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			clearPos(v.Field(i), seen)
		}
	}
}

// roundTrip prints m, parses that and compares; the second print must equal the first.
func roundTrip(t *testing.T, m *Module) {
	t.Helper()
	text := Print(m)
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("printed text does not parse: %v\n%s", err, text)
	}
	if second := Print(again); second != text {
		t.Fatalf("printing is not stable:\n%s\n---\n%s", text, second)
	}
	withoutPos(m)
	withoutPos(again)
	if !reflect.DeepEqual(m, again) {
		t.Fatalf("parsing the printed text gives another module:\n%s", text)
	}
}
