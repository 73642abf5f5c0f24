package pysyntax

// Inspect calls f for each statement and expression of a body, the outer ones first; where f returns false, not for what lies
// within.
func Inspect(body []Stmt, f func(Node) bool) {
	for _, s := range body {
		inspectStmt(s, f)
	}
}

func inspectStmt(s Stmt, f func(Node) bool) {
	if !f(s) {
		return
	}
	exprs, blocks := parts(s)
	for _, x := range exprs {
		inspectExpr(x, f)
	}
	for _, b := range blocks {
		Inspect(b, f)
	}
}

func inspectExpr(x Expr, f func(Node) bool) {
	if x == nil || !f(x) {
		return
	}
	for _, y := range operands(x) {
		inspectExpr(y, f)
	}
}

// parts are the expressions and blocks of a statement, in the order of the source but for decorators.
func parts(s Stmt) (exprs []Expr, blocks [][]Stmt) {
	switch s := s.(type) {
	case *ExprStmt:
		return []Expr{s.X}, nil
	case *Assign:
		return append(s.Targets[:len(s.Targets):len(s.Targets)], s.Value), nil
	case *AugAssign:
		return []Expr{s.Target, s.Value}, nil
	case *AnnAssign:
		return []Expr{s.Target, s.Annotation, s.Value}, nil
	case *Return:
		return []Expr{s.X}, nil
	case *Raise:
		return []Expr{s.X, s.From}, nil
	case *Assert:
		return []Expr{s.Test, s.Message}, nil
	case *Delete:
		return s.Targets, nil
	case *TypeAlias:
		return []Expr{s.Value}, nil
	case *If:
		return []Expr{s.Test}, [][]Stmt{s.Body, s.Else}
	case *For:
		return []Expr{s.Target, s.Iter}, [][]Stmt{s.Body, s.Else}
	case *While:
		return []Expr{s.Test}, [][]Stmt{s.Body, s.Else}
	}
	return defined(s)
}

// defined are those of statements that have several blocks, or parameters.
func defined(s Stmt) (exprs []Expr, blocks [][]Stmt) {
	switch s := s.(type) {
	case *Try:
		blocks = append(blocks, s.Body)
		for i := range s.Handlers {
			exprs, blocks = append(exprs, s.Handlers[i].Type), append(blocks, s.Handlers[i].Body)
		}
		blocks = append(blocks, s.Else, s.Finally)
	case *With:
		for _, i := range s.Items {
			exprs = append(exprs, i.Context, i.Target)
		}
		blocks = [][]Stmt{s.Body}
	case *Function:
		exprs = append(append(exprs, s.Decorators...), defaults(s.Params)...)
		exprs, blocks = append(exprs, s.Returns), [][]Stmt{s.Body}
	case *Class:
		exprs = append(append(exprs, s.Decorators...), values(s.Bases)...)
		blocks = [][]Stmt{s.Body}
	case *Match:
		exprs = []Expr{s.Subject}
		for i := range s.Cases {
			exprs, blocks = append(exprs, s.Cases[i].Guard), append(blocks, s.Cases[i].Body)
		}
	}
	return exprs, blocks
}

func defaults(params []Param) (all []Expr) {
	for _, p := range params {
		all = append(all, p.Annotation, p.Default)
	}
	return all
}

func values(args []Arg) (all []Expr) {
	for _, a := range args {
		all = append(all, a.Value)
	}
	return all
}

// operands are the expressions within one.
func operands(x Expr) []Expr {
	switch x := x.(type) {
	case *String:
		return x.Fields
	case *Attribute:
		return []Expr{x.X}
	case *Call:
		return append([]Expr{x.Func}, values(x.Args)...)
	case *Subscript:
		return []Expr{x.X, x.Index}
	case *Slice:
		return []Expr{x.Low, x.High, x.Step}
	case *Unary:
		return []Expr{x.X}
	case *Binary:
		return []Expr{x.X, x.Y}
	case *Compare:
		return append([]Expr{x.First}, x.Rest...)
	case *Conditional:
		return []Expr{x.Then, x.Test, x.Else}
	case *Lambda:
		return append(defaults(x.Params), x.Body)
	case *Sequence:
		return x.Elements
	case *Dict:
		return append(x.Keys[:len(x.Keys):len(x.Keys)], x.Values...)
	case *Comprehension:
		return comprehended(x)
	case *Yield:
		return []Expr{x.X}
	case *Walrus:
		return []Expr{x.Name, x.Value}
	}
	return nil
}

func comprehended(x *Comprehension) []Expr {
	all := []Expr{x.Key, x.Element}
	for _, c := range x.Clauses {
		all = append(append(all, c.Target, c.Iter), c.Conds...)
	}
	return all
}
