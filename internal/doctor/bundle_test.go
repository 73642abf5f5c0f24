package doctor

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// planted are what must not leave: names of hosts and people, folders, addresses, serial numbers, tokens.
var planted = []string{"node17.corp.example.com", "ada.lovelace", "/home/ada/secret-project", `C:\Users\Ada`, "10.20.30.40", "192.168.7.9", "fe80::a1b2:c3d4", "02:42:ac:11:00:02",
	"GPU-513536b6-7d19-9063-b049-1e69664bb298", "hf_AbCdEfGhIjKlMnOp", "ghp_0123456789abcdefghij", "AKIAIOSFODNN7EXAMPLE", "ada@corp.example.com", "2001:db8:85a3::8a2e:370:7334", "gpu-node-17", "DESKTOP-4F2K1QJ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "0242ac110002", "1320220012345",
	"513536b67d199063b0491e69664bb298", "https://ada:hunter2@git.example.com/x.git", "s3://secret-bucket/key", "sk-proj-AbCdEf123456", "xoxb-1234-abcd", "-----BEGIN OPENSSH PRIVATE KEY-----", "glpat-ABCDEF123456", "de9854fcafe0123456789abcdef0123456789abc", "ADA", "enx0242ac110002"}

// everything is facts in which nothing is empty.
func everything() *Facts {
	f := server()
	fill(reflect.ValueOf(f).Elem(), 0)
	return f
}

// fill gives what is empty an element or a text.
func fill(v reflect.Value, depth int) {
	if depth > 14 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() == 0 {
			v.SetString("nvidia")
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if v.Len() == 0 {
			v.SetMapIndex(reflect.ValueOf("nvidia"), reflect.New(v.Type().Elem()).Elem())
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// plant puts a secret into every text of v, by change, and says into how many.
func plant(v reflect.Value, change func(string) string) (n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(change(v.String()))
		return 1
	case reflect.Pointer:
		if !v.IsNil() {
			n += plant(v.Elem(), change)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += plant(v.Index(i), change)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			n += plant(value, change)
			v.SetMapIndex(key, value)
			v.SetMapIndex(reflect.ValueOf(change(key.String())), value)
			n++
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				n += plant(v.Field(i), change)
			}
		}
	}
	return n
}

// TestBundleLeaksNothing plants secrets in every text of the facts, alone and beside what is there, and looks for them in a bundle.
func TestBundleLeaksNothing(t *testing.T) {
	for _, secret := range planted {
		for how, change := range map[string]func(string) string{
			"alone":  func(string) string { return secret },
			"behind": func(s string) string { return s + secret },
			"before": func(s string) string { return secret + s },
			"spaced": func(s string) string { return s + " " + secret },
			"below":  func(s string) string { return s + "/" + secret },
			"listed": func(s string) string { return s + ":" + secret + "," + secret },
		} {
			f := everything()
			for name := range Variables {
				f.Env[name] = "1"
			}
			if n := plant(reflect.ValueOf(f).Elem(), change); n < 200 {
				t.Fatalf("planted in %d texts only", n)
			}
			raw, err := json.Marshal(Bundle(f))
			if err != nil {
				t.Fatal(err)
			}
			if i := strings.Index(string(raw), strings.Trim(fmt.Sprintf("%q", secret), `"`)); i >= 0 {
				t.Errorf("%s, planted %s, is in the bundle: …%s…", secret, how, raw[max(0, i-60):min(len(raw), i+60)])
			}
		}
	}
}

// texts adds the places of all texts that a type can have: names of fields from the top.
func texts(of reflect.Type, at string, depth int, all map[string]bool) {
	switch of.Kind() {
	case reflect.String:
		all[at] = true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		texts(of.Elem(), at, depth, all)
	case reflect.Map:
		texts(of.Key(), at+"{}", depth, all)
		texts(of.Elem(), at+"[]", depth, all)
	case reflect.Struct:
		for i := 0; i < of.NumField() && depth < 8; i++ {
			if f := of.Field(i); f.IsExported() {
				texts(f.Type, at+"."+f.Name, depth+1, all)
			}
		}
	}
}

// filled adds the places of all texts that a value has.
func filled(v reflect.Value, at string, depth int, all map[string]bool) {
	switch v.Kind() {
	case reflect.String:
		all[at] = true
	case reflect.Pointer:
		filled(v.Elem(), at, depth, all)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			filled(v.Index(i), at, depth, all)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			filled(it.Key(), at+"{}", depth, all)
			filled(it.Value(), at+"[]", depth, all)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && depth < 8; i++ {
			if f := v.Type().Field(i); f.IsExported() {
				filled(v.Field(i), at+"."+f.Name, depth+1, all)
			}
		}
	}
}

// TestEverything: secrets are planted into every text that facts can have, so that one of a new field joins. Libraries below
// libraries are the same type again.
func TestEverything(t *testing.T) {
	want, got := map[string]bool{}, map[string]bool{}
	texts(reflect.TypeFor[Facts](), "", 0, want)
	filled(reflect.ValueOf(everything()).Elem(), "", 0, got)
	for at := range want {
		if !got[at] && strings.Count(at, ".Others") < 2 {
			t.Errorf("nothing is planted in %s", at)
		}
	}
	if len(want) < 150 {
		t.Errorf("%d texts only", len(want))
	}
}

// TestBundleJudgesAlike: what is found on a machine is found by its bundle, but for what is about texts that stay there.
func TestBundleJudgesAlike(t *testing.T) {
	for _, c := range ruleCases {
		f := c.base()
		c.ill(f)
		var want, got []string
		for _, x := range Judge(f).Findings {
			want = append(want, x.Rule+" "+x.Name)
		}
		for _, x := range Judge(replayed(Bundle(f))).Findings {
			got = append(got, x.Rule+" "+x.Name)
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s: %v, of its bundle %v", c.rule, want, got)
		}
	}
	for name, base := range bases {
		whole := Judge(base())
		for _, fine := range Judge(replayed(Bundle(base()))).Checked {
			if !slices.Contains(whole.Checked, fine) {
				t.Errorf("%s: its bundle alone says: %s", name, fine)
			}
		}
		if d := Judge(replayed(Bundle(base()))); len(d.Findings) > 0 || d.Verdict.Broken != "" {
			t.Errorf("%s: of its bundle %s", name, titles(d))
		}
	}
}

// TestBundleCopies: a bundle shares nothing with the facts that it is of.
func TestBundleCopies(t *testing.T) {
	f := server()
	before, _ := json.Marshal(f)
	b := Bundle(f)
	b.NVML.Cards[0].Values[keyTotal] = 1
	b.PCI[0].Upstream[0].Link.Gen = 1
	*b.PCI[0].Numa = 7
	if after, _ := json.Marshal(f); string(after) != string(before) {
		t.Error("the facts changed with the bundle")
	}
}
