package table_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

func parse(t *testing.T, text string, c table.Config) *table.Table {
	t.Helper()
	tab, err := table.Parse("t.csv", []byte(text), c)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// rowsOf is all rows.
func rowsOf(t *table.Table) []int {
	rows := make([]int, t.Len())
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// TestBadInput: every mistake has an error of one line that names the place, and says what to do.
func TestBadInput(t *testing.T) {
	long := "a,b\n" + strings.Repeat("1,2\n", 5000)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "t.csv is empty"},
		{"blank", " \n\r\n\t", "t.csv is empty"},
		{"BOM alone", "\xef\xbb\xbf", "t.csv is empty"},
		{"names alone", "a,b\n", "t.csv has no rows"},
		{"ragged, short", "a,b\n1,2\n3\n", "t.csv, line 3: the number of cells is not that of the first line, 2"},
		{"ragged, long", "a,b\n1,2,3\n", "t.csv, line 2: the number of cells"},
		{"other comma", "a;b\n1,5;2\n", "t.csv, line 2: the number of cells is not that of the first line, 1"},
		{"name twice", "a,b,a\n1,2,3\n", `t.csv: two columns are called "a"`},
		{"UTF-16 LE", "\xff\xfea\x00,\x00", "t.csv is UTF-16"},
		{"UTF-16 BE", "\xfe\xff\x00a\x00,", "t.csv is UTF-16"},
		{"UTF-16 without BOM", "a\x00,\x00b\x00", "t.csv is UTF-16"},
		{"Latin-1", "name,v\nx,1\nJos\xe9,2\n", "t.csv, line 3, column 4: byte 0xe9 is not UTF-8"},
		{"Latin-1 in a name", "Stra\xdfe,v\nx,1\n", "byte 0xdf is not UTF-8"},
		{"byte 0", "a,b\nx\x00y,1\n", "t.csv, line 2, column 1: a cell has a byte 0"},
		{"beyond float64", "a,b\n1,2\n1,1e400\n", `t.csv, line 3, column 3: "1e400" is no finite float64, in the column "b"`},
		{"infinite", "a\n1\n-inf\n2\n", `t.csv, line 3, column 1: "-inf" is no finite float64`},
		{"beyond float64, late", long + "-1e999,1\n", `t.csv, line 5002, column 1: "-1e999"`},
		{"quote not closed", "a,b\n1,\"2\n3,4\n", "t.csv, line 2: the row that begins there has a quote that is not closed"},
		{"quote in a cell", "a,b\n1,2\"3\n", `t.csv, line 2, column 4: bare "`},
		{"JSON, nested", `{"a":[1]}`, `t.csv, line 1, column 7: the value of "a" is an array or an object`},
		{"JSON, cut", "{\"a\":1}\n{\"a\":", "t.csv, line 2, column 6: unexpected EOF"},
		{"JSON, key twice", `{"a":1,"a":2}`, `the key "a" comes twice`},
		{"JSON, two in a line", `{"a":1} {"a":2}`, "behind the object"},
		{"JSON, no object", "{\"a\":1}\n[1]\n", "line 2, column 2: the line is no object"},
		{"JSON, beyond float64", `{"a":1e400}`, `"1e400" is no finite float64`},
		{"JSON, Latin-1", "{\"a\":\"\xe9\"}", "line 1, column 7: byte 0xe9 is not UTF-8"},
	} {
		_, err := table.Parse("t.csv", []byte(c.text), table.Config{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && advice.HintOf(err) == "" {
			t.Errorf("%s: no hint with %v", c.name, err)
		}
	}
	for _, c := range []struct {
		text   string
		config table.Config
		want   string
	}{
		{"a,b\n1,x\n", table.Config{Kinds: map[string]table.Kind{"b": table.Number}}, `t.csv, line 2, column 3: "x" is no number, in the column "b" of numbers`},
		{"a,b\n1,x\n", table.Config{Kinds: map[string]table.Kind{"c": table.Number}}, `t.csv has no column "c"`},
		{"a,b\n1,x\n", table.Config{Kinds: map[string]table.Kind{"b": "date"}}, `column "b" is to be of kind "date"`},
		{"a,b\n1,x\n", table.Config{Comma: '"'}, "cannot stand between cells"},
	} {
		if _, err := table.Parse("t.csv", []byte(c.text), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := table.Open("nowhere.csv", table.Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestTypes: what columns become, also where the first text comes late.
func TestTypes(t *testing.T) {
	var late strings.Builder
	late.WriteString("n,code\n")
	for i := range 3000 {
		fmt.Fprintf(&late, "%d,%03d\n", i, i%7)
	}
	late.WriteString("3000,x\n")
	tab := parse(t, late.String(), table.Config{})
	code, err := tab.Column("code")
	if err != nil || code.Kind != table.Text || code.Text(2) != "002" || code.Text(2999) != "003" || code.Text(3000) != "x" {
		t.Errorf("%v: %+v", err, code)
	}
	if n := tab.Columns()[0]; n.Kind != table.Number || n.Number(3000) != 3000 || tab.Line(3000) != 3002 {
		t.Errorf("column n: %s %v", n.Kind, n.Number(3000))
	}
	tab = parse(t, "\xef\xbb\xbf\"a \",,b\r\n 1.5 ,\"x,\"\"y\"\"\n z\",NA\r\n-2e-3,,7\r\n", table.Config{})
	if want := []string{"a", "column 2", "b"}; !slices.Equal(tab.Names(), want) {
		t.Errorf("names %q", tab.Names())
	}
	got := fmt.Sprint(tab.Columns()[0].Number(0), tab.Columns()[0].Number(1), tab.Columns()[1].Text(0), tab.Columns()[1].IsMissing(1), tab.Columns()[2].IsMissing(0), tab.Line(1))
	if want := fmt.Sprint(1.5, -0.002, "x,\"y\"\n z", true, true, 4); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range []table.Config{{NoHeader: true}, {Comma: ';', NoHeader: true, Missing: []string{"1"}}} {
		tab = parse(t, "1\n2\n", c)
		if tab.Len() != 2 || tab.Names()[0] != "column 1" || tab.Columns()[0].IsMissing(0) != (c.Missing != nil) {
			t.Errorf("%v", tab)
		}
	}
	tab = parse(t, "{\"a\":1,\"b\":\"7\"}\n\n{\"c\":true,\"a\":null}\n", table.Config{})
	got = fmt.Sprint(tab.Names(), tab.Columns()[0].Kind, tab.Columns()[1].Kind, tab.Columns()[0].IsMissing(1), tab.Columns()[1].IsMissing(1), tab.Columns()[2].IsMissing(0), tab.Columns()[2].Text(1), tab.Line(1))
	if want := "[a b c]numbertexttrue true truetrue3"; got != want {
		t.Errorf("JSON: %q", got)
	}
}

// TestAsPandas: kinds, values and what is missing are those that pandas reads.
func TestAsPandas(t *testing.T) {
	var want struct {
		CSV     string
		Columns []struct {
			Name    string
			Numbers []*float64
			Texts   []*string
		}
		Train   []int
		Names   []string
		Encoded [][]float64
	}
	golden.JSON(t, "testdata/pandas.json", &want)
	tab := parse(t, want.CSV, table.Config{})
	for k, c := range want.Columns {
		col := tab.Columns()[k]
		if col.Name != c.Name || (col.Kind == table.Number) != (c.Numbers != nil) {
			t.Errorf("column %d is %q, a %s; want %q", k, col.Name, col.Kind, c.Name)
			continue
		}
		for i := range tab.Len() {
			switch {
			case c.Numbers != nil && (c.Numbers[i] == nil) != col.IsMissing(i), c.Numbers == nil && (c.Texts[i] == nil) != col.IsMissing(i):
				t.Errorf("%s, row %d: missing %v", c.Name, i, col.IsMissing(i))
			case col.IsMissing(i):
			case c.Numbers != nil && col.Number(i) != *c.Numbers[i], c.Numbers == nil && col.Text(i) != *c.Texts[i]:
				t.Errorf("%s, row %d: %q", c.Name, i, col.Text(i))
			}
		}
	}
	enc, err := table.Fit(tab, want.Train, table.Encoding{Target: "y"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(enc.Names(), want.Names) {
		t.Errorf("inputs %q, want %q", enc.Names(), want.Names)
	}
	x, err := enc.X(tab, rowsOf(tab))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range want.Encoded {
		got := make([]float64, len(row))
		for k := range got {
			got[k] = float64(x[i*len(row)+k])
		}
		testutil.Close(t, got, row, 1e-6, 1e-7)
	}
}

const people = `id,age,city,income,bought
1,20,Ulm,1000,no
2,30,Bonn,,yes
3,40,Ulm,3000,no
4,50,Kiel,2000,yes
5,60,,2500,no
6,70,Bonn,9000,yes
`

func TestEncoder(t *testing.T) {
	tab := parse(t, people, table.Config{})
	train := []int{0, 1, 2, 4}
	enc, err := table.Fit(tab, train, table.Encoding{Target: "bought", Drop: []string{"id"}, Unknown: table.Other})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"age", "city=Bonn", "city=Ulm", "city other", "city missing", "income", "income missing"}
	if !slices.Equal(enc.Names(), names) || enc.Width() != len(names) || !slices.Equal(enc.Classes(), []string{"no", "yes"}) {
		t.Errorf("%v from %q to %q", enc, enc.Names(), enc.Classes())
	}
	x, err := enc.X(tab, []int{1, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	dev := math.Sqrt((17.5*17.5 + 7.5*7.5 + 2.5*2.5 + 22.5*22.5) / 4)
	want := []float64{-7.5 / dev, 1, 0, 0, 0, 0, 1, 12.5 / dev, 0, 0, 1, 0, (2000 - 6500.0/3) / 849.8365855987975, 0, 22.5 / dev, 0, 0, 0, 1, (2500 - 6500.0/3) / 849.8365855987975, 0}
	got := make([]float64, len(x))
	for i := range x {
		got[i] = float64(x[i])
	}
	testutil.Close(t, got, want, 1e-6, 1e-7)
	raw, err := json.Marshal(enc)
	if err != nil {
		t.Fatal(err)
	}
	var again table.Encoder
	if err := json.Unmarshal(raw, &again); err != nil || again.Check() != nil {
		t.Fatal(err)
	}
	if y, err := again.X(tab, []int{1, 3, 4}); err != nil || !slices.Equal(x, y) {
		t.Errorf("read again it encodes %v, %v", y, err)
	}
	src, err := enc.Source(tab, train)
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range data.Batches(tensor.Best(), src, data.Config{Size: 4}) {
		if err != nil || !slices.Equal(b.X.Shape(), []int{4, 7}) || !slices.Equal(b.Y.Floats(), []float64{0, 1, 0, 0}) {
			t.Errorf("%v, %v", b, err)
		}
	}
	reg, err := table.Fit(tab, []int{0, 2, 3}, table.Encoding{Target: "income", Drop: []string{"id", "bought"}})
	if err != nil {
		t.Fatal(err)
	}
	y, err := reg.Numbers(tab, []int{0, 2, 3, 5})
	if err != nil || math.Abs(reg.Value(float64(y[3]))-9000) > 1e-2 || math.Abs(float64(y[0]+y[1]+y[2])) > 1e-6 {
		t.Errorf("targets %v, %v", y, err)
	}
	if src, err := reg.Source(tab, []int{0, 2, 3}); err != nil || !slices.Equal(src.Fields()[1].Shape, []int{1}) {
		t.Error(err)
	}
	classes, err := table.Fit(tab, rowsOf(tab), table.Encoding{Target: "age", Task: table.Classification})
	if err != nil || !slices.Equal(classes.Classes(), []string{"20", "30", "40", "50", "60", "70"}) {
		t.Errorf("%v, %v", classes, err)
	}
	if y, err := classes.Labels(tab, []int{5, 0}); err != nil || !slices.Equal(y, []int64{5, 0}) {
		t.Errorf("%v, %v", y, err)
	}
}

func TestEncoderErrors(t *testing.T) {
	tab := parse(t, people, table.Config{})
	all := rowsOf(tab)
	for _, c := range []struct {
		rows []int
		e    table.Encoding
		want string
	}{
		{all, table.Encoding{Target: "bougth"}, `t.csv has no column "bougth"`},
		{all, table.Encoding{}, `t.csv has no column ""`},
		{nil, table.Encoding{Target: "bought"}, "no rows to learn from"},
		{all, table.Encoding{Target: "income"}, `t.csv, line 3, column "income": the target is missing`},
		{[]int{0, 2, 4}, table.Encoding{Target: "bought"}, `the target "bought" is "no" in all 3 rows`},
		{[]int{0}, table.Encoding{Target: "age"}, `the target "age" is "20" in all 1 rows`},
		{all, table.Encoding{Target: "bought", Task: table.Regression}, "has texts, which are no regression's"},
		{all, table.Encoding{Target: "bought", Task: "ranking"}, `the task "ranking"`},
		{all, table.Encoding{Target: "bought", Drop: []string{"ids"}}, `no column "ids"`},
		{all, table.Encoding{Target: "bought", Drop: []string{"id", "age", "city", "income"}}, "no column is an input"},
		{all, table.Encoding{Target: "bought", Most: 2}, `column "city" has 3 different texts in 6 rows, more than 2`},
		{all, table.Encoding{Target: "age", Task: table.Classification, Most: 5}, "has 6 classes, more than 5"},
		{all, table.Encoding{Target: "bought", Unknown: "guess"}, `unknown texts are to be "guess"`},
	} {
		if _, err := table.Fit(tab, c.rows, c.e); err == nil || !strings.Contains(err.Error(), c.want) || advice.HintOf(err) == "" {
			t.Errorf("%+v: %v, want %q", c.e, err, c.want)
		}
	}
	if _, err := table.Fit(tab, all, table.Encoding{Target: "bougth"}); !strings.Contains(advice.HintOf(err), "did you mean bought?") {
		t.Errorf("hint %q", advice.HintOf(err))
	}
	far := parse(t, "a,b\n1e308,1\n-1e308,2\n", table.Config{})
	if _, err := table.Fit(far, []int{0, 1}, table.Encoding{Target: "b"}); err == nil || !strings.Contains(err.Error(), "too large to normalise") {
		t.Error(err)
	}
	enc, err := table.Fit(tab, []int{0, 1, 2}, table.Encoding{Target: "bought", Drop: []string{"id"}})
	if err != nil {
		t.Fatal(err)
	}
	if other := parse(t, "age,city,income,bought\n20,,1,no\n", table.Config{}); !slices.Contains(enc.Names(), "city missing") { // held out, or asked about
		t.Errorf("inputs %q", enc.Names())
	} else if _, err := enc.Source(other, rowsOf(other)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"age,city,income,bought\n20,Kiel,1,no\n":         `t.csv, line 2, column "city": "Kiel" is none of the 2 texts of training`,
		"age,city,income,bought\n,Ulm,1,no\n":            `t.csv, line 2, column "age": the value is missing, and in training none was`,
		"age,city,income,bought\n20,Ulm,1,maybe\n":       `"maybe" is none of the 2 classes of training`,
		"age,city,income,bought\n20,Ulm,1,\n":            `"" is none of the 2 classes of training`,
		"age,city,income,bought\nold,Ulm,1,no\n":         `t.csv, line 2, column "age": "old" is no number, as it was in training`,
		"age,city,income,bought\n1e300,Ulm,1,no\n":       `1e+300 is too far from the mean of training`,
		"age,income,bought\n20,1,no\n":                   `t.csv has no column "city"`,
		"{\"age\":\"20\",\"city\":\"Ulm\",\"income\":1}": `column "age" has texts, in training it had numbers`,
	} {
		other := parse(t, text, table.Config{})
		if _, err := enc.Source(other, rowsOf(other)); err == nil || !strings.Contains(err.Error(), want) || advice.HintOf(err) == "" {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, raw := range []string{`{}`, `{"task":"regression","target":{"kind":"number"}}`, `{"task":"regression","target":{"kind":"number","deviation":1},"inputs":[null]}`,
		`{"task":"classification","target":{"kind":"text"},"inputs":[]}`, `{"task":"regression","target":{"kind":"number","deviation":1},"inputs":[{"kind":"number","deviation":-1}]}`} {
		var e table.Encoder
		if err := json.Unmarshal([]byte(raw), &e); err != nil || e.Check() == nil {
			t.Errorf("%s: %v, and no error of Check", raw, err)
		}
	}
}

func TestSplit(t *testing.T) {
	var b strings.Builder
	b.WriteString("n,class\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "%d,%s\n", i, map[bool]string{true: "rare", false: "common"}[i%50 == 0])
	}
	b.WriteString("1000,single\n")
	tab := parse(t, b.String(), table.Config{})
	class, err := tab.Column("class")
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"", "class"} {
		split := func(seed uint64) (train, rest []int) {
			train, rest, err := tab.Split(0.8, seed)
			if by != "" {
				train, rest, err = tab.SplitBy(by, 0.8, seed)
			}
			if err != nil {
				t.Fatal(err)
			}
			return train, rest
		}
		train, rest := split(1)
		both := append(slices.Clone(train), rest...)
		slices.Sort(both)
		if !slices.Equal(both, rowsOf(tab)) || !slices.IsSorted(train) || !slices.IsSorted(rest) || len(train) != 801 {
			t.Errorf("by %q: %d and %d rows", by, len(train), len(rest))
		}
		again, _ := split(1)
		other, _ := split(2)
		if !slices.Equal(again, train) || slices.Equal(other, train) {
			t.Errorf("by %q: the seed does not decide", by)
		}
		if by == "" {
			continue
		}
		counts := map[string]int{}
		for _, i := range train {
			counts[class.Text(i)]++
		}
		if want := map[string]int{"rare": 16, "common": 784, "single": 1}; !reflect.DeepEqual(counts, want) {
			t.Errorf("counts %v, want %v", counts, want)
		}
	}
	one := parse(t, "a\n1\n", table.Config{})
	gap := parse(t, "a,b\n1,x\n2,\n", table.Config{})
	for want, f := range map[string]func() error{
		"a share of 1":           func() error { _, _, err := tab.Split(1, 1); return err },
		"a share of NaN":         func() error { _, _, err := tab.Split(math.NaN(), 1); return err },
		"has 1 row":              func() error { _, _, err := one.Split(0.5, 1); return err },
		"no column":              func() error { _, _, err := tab.SplitBy("x", 0.5, 1); return err },
		"no value to split by":   func() error { _, _, err := gap.SplitBy("b", 0.5, 1); return err },
		"every value of column":  func() error { _, _, err := gap.SplitBy("a", 0.5, 1); return err },
		"t.csv has no column \"": func() error { _, err := gap.Present("c"); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if rows, err := gap.Present("b"); err != nil || !slices.Equal(rows, []int{0}) {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestNumbersAreStrconvs: numbers of every length are those of strconv, bit by bit.
func TestNumbersAreStrconvs(t *testing.T) {
	r := testutil.Rand(t)
	var b strings.Builder
	b.WriteString("v\n")
	var want []float64
	for range 20_000 {
		s := strconv.FormatFloat((r.Float64()-0.5)*math.Pow(10, float64(r.IntN(25)-8)), []byte("fge")[r.IntN(3)], r.IntN(18), 64)
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, v)
		b.WriteString(s + "\n")
	}
	col := parse(t, b.String(), table.Config{}).Columns()[0]
	for i, v := range want {
		if math.Float64bits(col.Number(i)) != math.Float64bits(v) {
			t.Fatalf("row %d: %v, want %v", i, col.Number(i), v)
		}
	}
}

// FuzzParse: any bytes are a table, whose rows can be encoded, or an error of one line.
func FuzzParse(f *testing.F) {
	for _, s := range []string{people, "a,b\n1,\"2\n", "{\"a\":1,\"b\":\"x\"}\n{\"b\":null}\n", "\xff\xfea", "a\tb\n1\t1e400\n", "é,ß\n\"x\"\"\n\",NA\n", strings.Repeat("1,x\n", 1200) + "y,2\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, c := range []table.Config{{}, {Comma: ';', NoHeader: true}} {
			tab, err := table.Parse("f", raw, c)
			if err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("an error of several lines: %q", err)
				}
				continue
			}
			if tab.Len() < 1 || len(tab.Names()) < 1 {
				t.Fatalf("%v", tab)
			}
			rows := rowsOf(tab)
			enc, err := table.Fit(tab, rows, table.Encoding{Target: tab.Names()[0]})
			if err != nil {
				continue
			}
			x, err := enc.X(tab, rows)
			if err != nil {
				t.Fatalf("what was fitted cannot be encoded: %v", err)
			}
			if len(x) != len(rows)*enc.Width() || slices.ContainsFunc(x, func(v float32) bool { return v != v || math.IsInf(float64(v), 0) }) {
				t.Fatalf("%d values of %d rows, or one that is not finite", len(x), len(rows))
			}
		}
	})
}

// BenchmarkParse reads a table of numbers and texts.
func BenchmarkParse(b *testing.B) {
	var s strings.Builder
	s.WriteString("a,b,c,d,city\n")
	for i := range 100_000 {
		fmt.Fprintf(&s, "%d,%.6f,%.3f,%.4f,%s\n", i, math.Sin(float64(i)), float64(i)/7, 1e5*math.Cos(float64(i)), []string{"Ulm", "Bonn", "Kiel"}[i%3])
	}
	raw := []byte(s.String())
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := table.Parse("b.csv", raw, table.Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestStray: a slip among numbers is told, with its row; a column of texts is none, nor one of numbers.
func TestStray(t *testing.T) {
	rows := []string{"slip,numbers,texts,missing"}
	for i := range 40 {
		slip := strconv.Itoa(i)
		if i == 31 {
			slip = "3l"
		}
		rows = append(rows, slip+",1.5,a,")
	}
	tab, err := table.Parse("f.csv", []byte(strings.Join(rows, "\n")), table.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tab.Columns() {
		text, row, strays, ok := c.Stray()
		if ok != (c.Name == "slip") || ok && (text != "3l" || tab.Line(row) != 33 || strays != 1) {
			t.Errorf("%v: %q in row %d, %d in all, %v", c, text, row, strays, ok)
		}
	}
}
