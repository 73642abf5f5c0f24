package literal

import "regexp/syntax"

// head is what a match begins with; if it is exact, what follows in the expression follows it.
type head struct {
	text  string
	exact bool
}

const (
	mostHeads   = 64 // of an expression, beyond which it is known less exactly
	longestHead = 24 // bytes
)

// heads are, in lower case, what matches of an expression begin with: one of them each.
func heads(re *syntax.Regexp) []head {
	switch re.Op {
	case syntax.OpLiteral:
		return []head{{Lower(string(re.Rune)), true}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []head{{"", true}}
	case syntax.OpCapture:
		return heads(re.Sub[0])
	case syntax.OpPlus:
		return inexact(heads(re.Sub[0]))
	case syntax.OpQuest:
		return append(heads(re.Sub[0]), head{"", true})
	case syntax.OpStar:
		return append(inexact(heads(re.Sub[0])), head{"", true})
	case syntax.OpConcat:
		return joined(re.Sub)
	case syntax.OpAlternate:
		var all []head
		for _, sub := range re.Sub {
			all = append(all, heads(sub)...)
		}
		return all
	}
	return []head{{"", false}}
}

func inexact(all []head) []head {
	for i := range all {
		all[i].exact = false
	}
	return all
}

// joined are the heads of what stands one behind the other.
func joined(subs []*syntax.Regexp) []head {
	all := []head{{"", true}}
	for _, sub := range subs {
		next := heads(sub)
		var longer []head
		open := false
		for _, h := range all {
			if !h.exact || len(h.text) >= longestHead {
				longer = append(longer, head{h.text, false})
				continue
			}
			for _, n := range next {
				longer = append(longer, head{h.text + n.text, n.exact})
				open = open || n.exact
			}
		}
		if len(longer) > mostHeads {
			return inexact(all)
		}
		if all = longer; !open {
			break
		}
	}
	return all
}

// needs is the longest text that every match of an expression has, in lower case.
func needs(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		return Lower(string(re.Rune))
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n := needs(sub); len(n) > len(longest) {
				longest = n
			}
		}
	}
	return longest
}
