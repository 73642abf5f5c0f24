package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// trial is a mutated instruction with both answers.
type trial struct {
	text, op string
	kind     string // of mutation
	ptxas    verdict
	ours     error
}

func (t *trial) agree() bool { return (t.ptxas == "") == (t.ours == nil) }

// compare mutates instructions that the table accepts and asks both sides about them, in random versions and targets.
func compare(a *assembler, seed uint64, n int, only []string) ([]byte, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	base := accepted(only)
	var all []*trial
	for i, w := range worlds(rng, only) {
		count := n / 40
		if i == 0 {
			count = n / 2
		}
		batch := make([]*trial, count)
		texts := make([]string, count)
		for i := range batch {
			batch[i] = mutate(rng, base)
			texts[i] = batch[i].text
		}
		vs, err := a.judge(w.version, w.target, texts)
		if err != nil {
			return nil, fmt.Errorf("PTX %s, %s: %w", w.version, w.target, err)
		}
		for i, t := range batch {
			t.ptxas = vs[i]
			t.ours = ours(w.version, w.target, t.text)
		}
		all = append(all, batch...)
	}
	return report(all, seed, only), nil
}

type world struct{ version, target string }

// worlds is the base of the project, PTX 7.4 for sm_80, or of some opcodes the newest for sm_90a; and twenty random pairs.
func worlds(rng *rand.Rand, only []string) []world {
	ws := []world{{"7.4", "sm_80"}}
	if len(only) > 0 {
		ws[0] = world{newest, "sm_90a"}
	}
	for len(ws) < 21 {
		t := targets[rng.IntN(len(targets))]
		v := versions[rng.IntN(len(versions))]
		if !older(v, t.since) {
			ws = append(ws, world{v, t.name})
		}
	}
	return ws
}

// accepted is the candidates that the checker takes, by family.
func accepted(only []string) [][]string {
	by := map[string][]string{}
	var order []string
	for c := range ptx.Candidates() {
		if op, _, _ := strings.Cut(c.Family, "#"); len(only) > 0 && !slices.Contains(only, op) {
			continue
		}
		if !slices.ContainsFunc([]string{"sm_120", "sm_80", "sm_90a"}, func(target string) bool { return ours(newest, target, c.Text) == nil }) {
			continue
		}
		if by[c.Family] == nil {
			order = append(order, c.Family)
		}
		by[c.Family] = append(by[c.Family], c.Text)
	}
	list := make([][]string, len(order))
	for i, f := range order {
		list[i] = by[f]
	}
	return list
}

// ours is the verdict of internal/ptx.
func ours(version, target, inst string) error {
	text, _ := source(version, target, []string{inst})
	m, err := ptx.Parse(strings.Replace(string(text), "madeup.s32 %b32_1;\n", "", 1))
	if err != nil {
		return err
	}
	if errs := ptx.Check(m); len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// operandPool is what a mutation puts in place of an operand.
var operandPool = []string{
	"%pred_1", "!%pred_2", "%b16_1", "%b32_1", "%b64_1", "%u16_1", "%u32_1", "%u64_1", "%s16_1", "%s32_1", "%s64_1", "%f16_1", "%f16x2_1",
	"%f32_1", "%f64_1", "1", "-1", "5U", "0f3F800000", "0d3FF0000000000000", "1.5", "%tid.x", "%clock64", "%laneid", "vshared", "vglobal",
	"vlocal", "vconst", "vshared+4", "[%b64_1]", "[%b32_1]", "[%u64_1+8]", "[%f32_1]", "[vshared]", "[vglobal+4]", "[vlocal]", "[vconst]",
	"[16]", "_", "{%b32_1,%b32_2}", "{%f32_1,%f32_2}", "{%b16_1,%b16_2}", "{%b32_1}", "{%b32_1,%b32_2,%b32_3,%b32_4}",
	"{%f32_1,%f32_2,%f32_3,%f32_4}", "{%b64_1,%b64_2}", "Target", "%b32_1|%pred_3", "%pred_1|%pred_3", "%b8_1", "%u8_1", "16", "4", "32",
	"[%b64_2, {%b32_0,%b32_1}]", "[%b64_2, {%b32_0,%b32_1,%b32_2}]", "{%b16_1}", "128",
}

var modifierPool = []string{"ftz", "sat", "rn", "rz", "approx", "relu", "NaN", "sync", "aligned", "global", "shared", "shared::cta", "local", "const",
	"param", "volatile", "relaxed", "acquire", "release", "gpu", "cta", "sys", "nc", "v2", "v4", "ca", "cg", "cs", "L2::128B", "L2::cache_hint",
	"L1::no_allocate", "wide", "hi", "lo", "uni", "noftz", "pred", "u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64",
	"f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "tf32", "add", "min", "and", "or", "xor", "eq", "lt", "ltu", "trans", "x2", "x4", "wt",
	"async", "bulk", "tensor", "2d", "3d", "tile", "im2col", "shared::cluster", "multicast::cluster", "mbarrier::complete_tx::bytes", "bulk_group", "read",
	"e4m3", "e5m2", "m64n64k16", "tensormap", "satfinite"}

// mutate changes one thing of an accepted instruction.
func mutate(rng *rand.Rand, base [][]string) *trial {
	family := base[rng.IntN(len(base))]
	text := family[rng.IntN(len(family))]
	head, tail, _ := strings.Cut(strings.TrimSuffix(text, ";"), " ")
	mods := strings.Split(head, ".")
	op := mods[0]
	mods = mods[1:]
	args := splitArgs(tail)
	kinds := []string{"none", "modifier replaced", "modifier dropped", "modifier added", "modifiers reordered", "operand replaced", "operand dropped", "operand added", "operands swapped"}
	kind := kinds[rng.IntN(len(kinds))]
	switch kind {
	case "modifier replaced":
		if len(mods) > 0 {
			mods[rng.IntN(len(mods))] = modifierPool[rng.IntN(len(modifierPool))]
		}
	case "modifier dropped":
		if len(mods) > 0 {
			i := rng.IntN(len(mods))
			mods = slices.Delete(mods, i, i+1)
		}
	case "modifier added":
		mods = slices.Insert(mods, rng.IntN(len(mods)+1), modifierPool[rng.IntN(len(modifierPool))])
	case "modifiers reordered":
		rng.Shuffle(len(mods), func(i, j int) { mods[i], mods[j] = mods[j], mods[i] })
	default:
		args = mutateArgs(rng, kind, args)
	}
	text = strings.Join(append([]string{op}, mods...), ".")
	return &trial{text: text + " " + strings.Join(args, ", ") + ";", op: op, kind: kind}
}

func mutateArgs(rng *rand.Rand, kind string, args []string) []string {
	pick := func() string { return operandPool[rng.IntN(len(operandPool))] }
	switch {
	case kind == "operand added":
		return slices.Insert(args, rng.IntN(len(args)+1), pick())
	case len(args) == 0:
		return args
	case kind == "operand replaced":
		args[rng.IntN(len(args))] = pick()
	case kind == "operand dropped":
		i := rng.IntN(len(args))
		return slices.Delete(args, i, i+1)
	case kind == "operands swapped":
		i, j := rng.IntN(len(args)), rng.IntN(len(args))
		args[i], args[j] = args[j], args[i]
	}
	return args
}

// splitArgs cuts operands at the commas outside braces.
func splitArgs(s string) []string {
	var args []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(s[start:]); rest != "" {
		args = append(args, rest)
	}
	return args
}

func report(all []*trial, seed uint64, only []string) []byte {
	var out bytes.Buffer
	agree, accept, asked := 0, 0, len(all)
	kinds := map[string][2]int{}
	var odd []*trial
	all = slices.DeleteFunc(all, func(t *trial) bool { return t.ptxas == crashed })
	for _, t := range all {
		k := kinds[t.kind]
		k[0]++
		if t.agree() {
			agree++
			k[1]++
			if t.ptxas == "" {
				accept++
			}
		} else {
			odd = append(odd, t)
		}
		kinds[t.kind] = k
	}
	fmt.Fprintf(&out, "# internal/ptx against ptxas\n\n")
	flags, base := "", "PTX 7.4 for sm_80"
	if len(only) > 0 {
		flags, base = " -only "+strings.Join(only, ","), "PTX "+newest+" for sm_90a"
	}
	fmt.Fprintf(&out, "Made by `go run ./bench/ptx -seed %d%s compare` with ptxas 12.9. Half of the instructions are judged as %s, the others in twenty random pairs of version and target.\n\n", seed, flags, base)
	fmt.Fprintf(&out, "Instructions: %d. Agreement: %d (%.2f %%): both accept %d, both reject %d. Disagreement: %d. Left out, since ptxas crashed on them: %d.\n\n", len(all), agree, 100*float64(agree)/float64(len(all)), accept, agree-accept, len(odd), asked-len(all))
	fmt.Fprintf(&out, "| mutation | instructions | agreement |\n|---|---|---|\n")
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Fprintf(&out, "| %s | %d | %d |\n", k, kinds[k][0], kinds[k][1])
	}
	disagreements(&out, odd)
	return out.Bytes()
}

// reasons sorts disagreements; the first that fits counts. The last takes what is left.
var reasons = []struct {
	text string
	fits func(t *trial) bool
}{
	{"ptxas takes `.pred`, `.v2`, `.tf32` and the like where they mean nothing, and words said twice; here they are unknown modifiers or forms", func(t *trial) bool {
		return t.ptxas == "" && (t.kind == "modifier added" || t.kind == "modifier replaced")
	}},
	{"ptxas's front end takes an address expression such as `symbol+4` for an integer; no compiler was seen to write that, and here it is refused", func(t *trial) bool {
		return t.ptxas == "" && strings.Contains(t.text, "+4") && !strings.Contains(t.text, "+4]")
	}},
	{"ptxas does not miss the operation of testp or vote, or the type of wmma; the instruction means nothing without", func(t *trial) bool {
		return t.ptxas == "" && t.kind == "modifier dropped"
	}},
	{"ptxas does not look at these operands", func(t *trial) bool { return t.ptxas == "" }},
	{"rules of ptxas that are not modelled: an error of ptxas that the checker misses", func(*trial) bool { return true }},
}

func disagreements(out *bytes.Buffer, odd []*trial) {
	fmt.Fprintf(out, "\n## Disagreements\n")
	sort.SliceStable(odd, func(i, j int) bool { return odd[i].text < odd[j].text })
	for i, r := range reasons {
		var group []*trial
		odd = slices.DeleteFunc(odd, func(t *trial) bool {
			if !r.fits(t) {
				return false
			}
			group = append(group, t)
			return true
		})
		if len(group) > 0 {
			fmt.Fprintf(out, "\n%d. %d: %s.\n", i+1, len(group), r.text)
		}
		for _, t := range group {
			fmt.Fprintf(out, "   * `%s`%s\n", t.text, t.answer())
		}
	}
}

// answer is what the side that rejects says.
func (t *trial) answer() string {
	if t.ours != nil {
		return ""
	}
	return ": " + strings.TrimSuffix(string(t.ptxas), "; ")
}
