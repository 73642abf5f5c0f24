package vetpy

import "strings"

// arm is a branch that a condition chooses.
type arm struct {
	parent *arm
	test   string
	which  int
}

// excludes tells whether a run that takes one arm does not take the other.
func (a *arm) excludes(b *arm) bool {
	for x := a; x != nil; x = x.parent {
		for y := b; y != nil; y = y.parent {
			if x.test == y.test && x.which != y.which {
				return true
			}
		}
	}
	return false
}

// deep is in how many branches an arm lies.
func (a *arm) deep() (n int) {
	for ; a != nil; a = a.parent {
		n++
	}
	return n
}

// within tells whether a lies in b, or is b.
func (a *arm) within(b *arm) bool {
	for ; a != nil; a = a.parent {
		if a == b {
			return true
		}
	}
	return b == nil
}

// impliedBy tells whether all conditions of a arm are met wherever those of b are.
func (a *arm) impliedBy(b *arm) bool {
	for ; a != nil; a = a.parent {
		met := false
		for y := b; y != nil; y = y.parent {
			met = met || y.test == a.test && y.which == a.which
		}
		if !met {
			return false
		}
	}
	return true
}

// caches tells whether an arm is taken where what a module keeps is not there yet.
func (a *arm) caches() bool {
	for ; a != nil; a = a.parent {
		if strings.Contains(a.test, "self.") && (a.which == 0 && absence().MatchString(a.test) || a.which == 1 && presence().MatchString(a.test)) {
			return true
		}
	}
	return false
}

var (
	absence  = pattern(`self\.[\w.\[\]]+ (is|==) None| not in self\.|not hasattr\(self`)
	presence = pattern(`self\.[\w.\[\]]+ (is not|!=) None|[^t] in self\.|^hasattr\(self|^self\.\w*(cache|mask)\w*$`)
)
