package pysyntax

import (
	"sort"
)

// Node is a part of a program.
type Node interface {
	// Span is where the node is in [File.Source]: its first byte, and the one behind its last.
	Span() (from, to int)
}

// Stmt is a statement.
type Stmt interface {
	Node
	stmt()
}

// Expr is an expression, a target of an assignment, or a pattern's class and value.
type Expr interface {
	Node
	expr()
}

// span is where a node is.
type span struct{ from, to int32 }

// Span implements [Node].
func (s span) Span() (from, to int) { return int(s.from), int(s.to) }

type (
	statement  struct{ span }
	expression struct{ span }
)

func (statement) stmt()  {}
func (expression) expr() {}

// File is a program.
type File struct {
	Name     string
	Source   []byte // UTF-8, without a mark of the byte order
	Body     []Stmt
	Comments []Comment // in their order

	text  string  // the source
	lines []int32 // where lines begin
}

// String is the source as a text.
func (f *File) String() string { return f.text }

// Comment is a comment, from its # to the end of the line.
type Comment struct {
	span
	Text string
}

// Position is a place in a file as people count: lines from 1, columns in bytes from 1.
type Position struct{ Line, Column int }

// Position is that of a byte of the source.
func (f *File) Position(offset int) Position {
	i := sort.Search(len(f.lines), func(i int) bool { return int(f.lines[i]) > offset }) - 1
	return Position{i + 1, offset - int(f.lines[i]) + 1}
}

// Line is the number of the line in which a node begins.
func (f *File) Line(n Node) int {
	from, _ := n.Span()
	return f.Position(from).Line
}

// Text is the source of a node.
func (f *File) Text(n Node) string {
	from, to := n.Span()
	return f.text[from:to]
}

// Lines is how many lines the file has.
func (f *File) Lines() int { return len(f.lines) }

// LineText is a line by its number, without its end.
func (f *File) LineText(line int) string {
	if line < 1 || line > len(f.lines) {
		return ""
	}
	from, to := int(f.lines[line-1]), len(f.Source)
	if line < len(f.lines) {
		to = int(f.lines[line])
	}
	for to > from && (f.Source[to-1] == '\n' || f.Source[to-1] == '\r') {
		to--
	}
	return f.text[from:to]
}

// Expressions.
type (
	// Name is an identifier, or True, False, None.
	Name struct {
		expression
		ID string
	}
	// Number is a number as it is written.
	Number struct {
		expression
		Text string
	}
	// String is a string or bytes, several in a row as one.
	String struct {
		expression
		Value  string // what is between the quotes as it is written: escapes stay. Of an f-string the fields too
		Bytes  bool
		Fields []Expr // of f-strings and t-strings, those of formats too
	}
	// Ellipsis is "...".
	Ellipsis struct{ expression }
	// Attribute is X.Attr.
	Attribute struct {
		expression
		X    Expr
		Attr string
	}
	// Call is Func(Args).
	Call struct {
		expression
		Func Expr
		Args []Arg
	}
	// Subscript is X[Index]; of several indices a [Sequence].
	Subscript struct {
		expression
		X, Index Expr
	}
	// Slice is Low:High:Step in an index; what is left out is nil.
	Slice struct {
		expression
		Low, High, Step Expr
	}
	// Unary is Op X: "-", "+", "~", "not", "await", or "*" and "**" before what is unpacked.
	Unary struct {
		expression
		Op string
		X  Expr
	}
	// Binary is X Op Y, "and" and "or" too.
	Binary struct {
		expression
		Op   string
		X, Y Expr
	}
	// Compare is First Ops[0] Rest[0] Ops[1] Rest[1] and so on: "<", "is not", "in".
	Compare struct {
		expression
		First Expr
		Ops   []string
		Rest  []Expr
	}
	// Conditional is Then if Test else Else.
	Conditional struct {
		expression
		Test, Then, Else Expr
	}
	// Lambda is a function without a name.
	Lambda struct {
		expression
		Params []Param
		Body   Expr
	}
	// Sequence is a tuple, a list or a set by its elements.
	Sequence struct {
		expression
		Kind     byte // '(', '[' or '{'
		Elements []Expr
	}
	// Dict is a dictionary; the key of a **mapping is nil.
	Dict struct {
		expression
		Keys, Values []Expr
	}
	// Comprehension is a list, set, dictionary or generator by a loop.
	Comprehension struct {
		expression
		Kind    byte // as of Sequence; '(' is a generator
		Key     Expr // of dictionaries
		Element Expr
		Clauses []Clause
	}
	// Yield is "yield X" or "yield from X".
	Yield struct {
		expression
		From bool
		X    Expr
	}
	// Walrus is Name := Value.
	Walrus struct {
		expression
		Name  *Name
		Value Expr
	}
)

// Arg is an argument of a call or a base of a class. Star is "*" or "**" where it is unpacked.
type Arg struct {
	Name  string
	Star  string
	Value Expr
}

// Clause is "for Target in Iter if Conds" of a comprehension.
type Clause struct {
	Async        bool
	Target, Iter Expr
	Conds        []Expr
}

// Param is a parameter of a function. Star is "*" or "**"; a lone "*" and "/" are not parameters.
type Param struct {
	Name       string
	Star       string
	Annotation Expr
	Default    Expr
}

// Statements.
type (
	// ExprStmt is an expression of which nothing is kept.
	ExprStmt struct {
		statement
		X Expr
	}
	// Assign is Targets[0] = Targets[1] = Value.
	Assign struct {
		statement
		Targets []Expr
		Value   Expr
	}
	// AugAssign is Target Op= Value; Op is without "=".
	AugAssign struct {
		statement
		Target Expr
		Op     string
		Value  Expr
	}
	// AnnAssign is Target: Annotation = Value; without a value it is nil.
	AnnAssign struct {
		statement
		Target, Annotation, Value Expr
	}
	// Return is a return.
	Return struct {
		statement
		X Expr
	}
	// Raise is a raise.
	Raise struct {
		statement
		X, From Expr
	}
	// Assert is an assertion.
	Assert struct {
		statement
		Test, Message Expr
	}
	// Delete is a del.
	Delete struct {
		statement
		Targets []Expr
	}
	// Branch is pass, break or continue.
	Branch struct {
		statement
		Word string
	}
	// Scope is global or nonlocal.
	Scope struct {
		statement
		Word  string
		Names []string
	}
	// Import is "import a.b as c".
	Import struct {
		statement
		Names []Alias
	}
	// ImportFrom is "from ..Module import Names"; Level counts its dots.
	ImportFrom struct {
		statement
		Module string
		Level  int
		Names  []Alias
	}
	// If is an if; an elif is an If that is all of Else.
	If struct {
		statement
		Test       Expr
		Body, Else []Stmt
	}
	// For is a loop over Iter.
	For struct {
		statement
		Async        bool
		Target, Iter Expr
		Body, Else   []Stmt
	}
	// While is a loop.
	While struct {
		statement
		Test       Expr
		Body, Else []Stmt
	}
	// Try is a try with what handles its exceptions.
	Try struct {
		statement
		Body          []Stmt
		Handlers      []Handler
		Else, Finally []Stmt
	}
	// With is a with.
	With struct {
		statement
		Async bool
		Items []WithItem
		Body  []Stmt
	}
	// Function is a def.
	Function struct {
		statement
		Async      bool
		Decorators []Expr
		Name       string
		Params     []Param
		Returns    Expr
		Body       []Stmt
	}
	// Class is a class.
	Class struct {
		statement
		Decorators []Expr
		Name       string
		Bases      []Arg
		Body       []Stmt
	}
	// Match is a match.
	Match struct {
		statement
		Subject Expr
		Cases   []Case
	}
	// TypeAlias is "type Name = Value".
	TypeAlias struct {
		statement
		Name  string
		Value Expr
	}
)

// Alias is a name that is imported, "a.b", and the one it gets; without "as" that is "".
type Alias struct{ Name, As string }

// Handler is an except. Type is nil where it takes all.
type Handler struct {
	span
	Type Expr
	Name string
	Body []Stmt
}

// WithItem is "Context as Target"; without "as" Target is nil.
type WithItem struct{ Context, Target Expr }

// Case is a case of a match. Of its pattern, only the names that it binds are kept.
type Case struct {
	span
	Binds []string
	Guard Expr
	Body  []Stmt
}
