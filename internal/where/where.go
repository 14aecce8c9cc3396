// Package where parses the expressions that select rows.
//
//	expression = conjunction { "or" conjunction }
//	conjunction = negation { "and" negation }
//	negation   = { "not" } ( "(" expression ")" | test )
//	test       = column compare literal
//	           | literal compare column
//	           | column [ "not" ] "in" "(" literal { "," literal } ")"
//	           | column [ "not" ] "between" literal "and" literal
//	           | column [ "not" ] "like" "'" pattern "'"
//	           | column "is" [ "not" ] "null"
//	compare    = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//	column     = name | '"' text '"'
//	literal    = number | "'" text "'" | "true" | "false" | "0x…"
//	           | "date" "'…'" | "timestamp" "'…'"
//
// Keywords may be in any case. In the pattern of like, a percent sign stands for any text, also for
// none; \% \_ \\ match the characters themselves. Without a percent sign, the pattern is the whole
// value. For a binary column, the pattern is the bytes of its text in UTF-8. A column may have the
// name true, false, or null. A literal must be a value that the column can represent exactly; a
// FLOAT or DOUBLE column uses the nearest value, and refuses literals beyond its range.
package where

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Op is the operator of an Expr.
type Op uint8

// The operators. And, Or and Not have expressions as operands, all others a column and cells: In
// any number of cells, Between two, IsNull none, Prefix and the comparisons one.
const (
	And Op = iota + 1
	Or
	Not
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	In
	Between // both ends inclusive
	Prefix
	Like // the texts between the percent signs of a pattern, at least two
	IsNull
)

var opNames = [...]string{And: "and", Or: "or", Not: "not", Eq: "=", Ne: "!=", Lt: "<", Le: "<=", Gt: ">",
	Ge: ">=", In: "in",
	Between: "between", Prefix: "like", Like: "like parts", IsNull: "is null"}

func (o Op) String() string { return opNames[o] }

// Expr is an expression, bound to a schema. NULL follows SQL: a test of NULL is neither true nor
// false, and so is its Not.
type Expr struct {
	Op       Op
	Operands []*Expr
	Column   *schema.Column
	Cells    [][]byte // values of Column, as the engine stores them
}

// maxDepth bounds the nesting of parentheses and nots.
const maxDepth = 100

// Parse parses an expression on columns. A column whose type is not valid has no values that could
// be written, and can only be tested for NULL. Errors name the column or the byte, counted from 1.
func Parse(columns []schema.Column, expression string) (*Expr, error) {
	p := parser{columns: columns, lexer: lexer{input: expression}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	e, err := p.disjunction()
	if err == nil && p.token.kind != end {
		err = p.unexpected(`"and" or "or"`)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

type parser struct {
	columns []schema.Column
	lexer   lexer
	token   token // the next one
	depth   int
}

func (p *parser) advance() (err error) {
	p.token, err = p.lexer.next()
	return err
}

func (p *parser) unexpected(want string) error {
	return fmt.Errorf("byte %d: want %s, not %s", p.token.at+1, want, p.token)
}

func (p *parser) at(s string) bool { return p.token.kind == symbol && p.token.text == s }

// expect consumes a symbol or keyword that must come next.
func (p *parser) expect(what string) error {
	if !p.token.is(what) && !p.at(what) {
		return p.unexpected(fmt.Sprintf("%q", what))
	}
	return p.advance()
}

func (p *parser) disjunction() (*Expr, error) { return p.joined(Or, p.conjunction) }
func (p *parser) conjunction() (*Expr, error) { return p.joined(And, p.negation) }

// joined parses operands with the operator's word between them.
func (p *parser) joined(op Op, operand func() (*Expr, error)) (*Expr, error) {
	first, err := operand()
	if err != nil || !p.token.is(op.String()) {
		return first, err
	}
	e := &Expr{Op: op, Operands: []*Expr{first}}
	for p.token.is(op.String()) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		next, err := operand()
		if err != nil {
			return nil, err
		}
		e.Operands = append(e.Operands, next)
	}
	return e, nil
}

func (p *parser) negation() (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("byte %d: more than %d levels of parentheses and nots", p.token.at+1, maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.token.is("not"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		e, err := p.negation()
		return negated(e, true), err
	case p.at("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		e, err := p.disjunction()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	}
	return p.test()
}

// negated returns e, or Not of it.
func negated(e *Expr, not bool) *Expr {
	if !not || e == nil {
		return e
	}
	return &Expr{Op: Not, Operands: []*Expr{e}}
}

var comparisons = map[string]Op{"=": Eq, "==": Eq, "!=": Ne, "<>": Ne, "<": Lt, "<=": Le, ">": Gt, ">=": Ge}

func (p *parser) test() (*Expr, error) {
	if p.atLiteral() {
		return p.mirrored()
	}
	column, err := p.column()
	if err != nil {
		return nil, err
	}
	e := &Expr{Column: column}
	if !column.Type.Valid() && !p.token.is("is") {
		return nil, onlyNull(column)
	}
	if op, ok := comparisons[p.token.text]; ok && p.token.kind == symbol {
		e.Op = op
		if err := p.advance(); err != nil {
			return nil, err
		}
		return e, p.literal(e)
	}
	if p.token.is("is") {
		return p.isNull(e)
	}
	not := p.token.is("not")
	if not {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	switch {
	case p.token.is("in"):
		err = p.list(e)
	case p.token.is("between"):
		err = p.between(e)
	case p.token.is("like"):
		err = p.like(e)
	case not:
		err = p.unexpected("in, between, or like")
	default:
		err = p.unexpected("= != < <= > >= in, between, like, or is")
	}
	return negated(e, not), err
}

// atLiteral reports whether the next token begins a literal and is no column.
func (p *parser) atLiteral() bool {
	switch t := p.token; {
	case t.kind == number, t.kind == text, t.kind == hexText:
		return true
	case t.is("date"), t.is("timestamp"):
		ahead := p.lexer
		next, err := ahead.next()
		return err == nil && next.kind == text // which no column is followed by
	case t.is("true"), t.is("false"), t.is("null"):
		return p.find(t.text) == nil
	}
	return false
}

// mirrors are the operators with the same meaning when the sides change places.
var mirrors = map[Op]Op{Eq: Eq, Ne: Ne, Lt: Gt, Le: Ge, Gt: Lt, Ge: Le}

// mirrored parses a comparison whose literal comes first.
func (p *parser) mirrored() (*Expr, error) {
	value, err := p.constant()
	if err != nil {
		return nil, err
	}
	op, ok := comparisons[p.token.text]
	if !ok || p.token.kind != symbol {
		return nil, p.unexpected("= != < <= > or >= after a literal")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	column, err := p.column()
	if err != nil {
		return nil, err
	}
	if !column.Type.Valid() {
		return nil, onlyNull(column)
	}
	e := &Expr{Op: mirrors[op], Column: column}
	return e, value.addTo(e)
}

func onlyNull(c *schema.Column) error {
	return fmt.Errorf(`column %q: only "is null" and "is not null" can test it`, c.Name)
}

// find returns the column of a name, or nil if no column has the name.
func (p *parser) find(name string) *schema.Column {
	for i := range p.columns {
		if p.columns[i].Name == name {
			return &p.columns[i]
		}
	}
	return nil
}

func (p *parser) column() (*schema.Column, error) {
	if p.token.kind != word && p.token.kind != quoted {
		return nil, p.unexpected("a column")
	}
	if c := p.find(p.token.text); c != nil {
		return c, p.advance()
	}
	names := make([]string, len(p.columns))
	for i := range p.columns {
		names[i] = p.columns[i].Name
	}
	return nil, fmt.Errorf("column %q: no such column%s", p.token.text, nearest.Hint(p.token.text, names))
}

// list parses "in" and its literals.
func (p *parser) list(e *Expr) error {
	e.Op = In
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.expect("("); err != nil {
		return err
	}
	for {
		if err := p.literal(e); err != nil {
			return err
		}
		if !p.at(",") {
			return p.expect(")")
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

// between parses "between" and its two literals.
func (p *parser) between(e *Expr) error {
	e.Op = Between
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.literal(e); err != nil {
		return err
	}
	if err := p.expect("and"); err != nil {
		return err
	}
	return p.literal(e)
}

// like parses "like" and a pattern. A whole value is an Eq, and a prefix a Prefix.
func (p *parser) like(e *Expr) error {
	if err := p.advance(); err != nil {
		return err
	}
	c, pattern := e.Column, p.token
	if pattern.kind != text {
		return p.unexpected("a pattern: 'prefix%', '%suffix', or '%part%'")
	}
	if c.Type != schema.String && c.Type != schema.Varchar && c.Type != schema.Binary {
		return fmt.Errorf("column %q: like needs a string, varchar, or binary column, not %s", c.Name, c.TypeName())
	}
	parts, err := patternParts(pattern.text)
	if err != nil {
		return fmt.Errorf("byte %d: %w", pattern.at+1, err)
	}
	switch {
	case len(parts) == 1:
		e.Op = Eq
	case len(parts) == 2 && parts[1] == "":
		e.Op, parts = Prefix, parts[:1]
	default:
		e.Op = Like
	}
	if e.Op != Eq || c.Type == schema.Binary {
		c = &schema.Column{Type: schema.String} // a text longer than a varchar is valid, and matches nothing
	}
	for _, part := range parts {
		cell, err := celltext.FromText([]byte{}, c, part)
		if err != nil {
			return fmt.Errorf("column %q: %w", e.Column.Name, err)
		}
		e.Cells = append(e.Cells, cell)
	}
	return p.advance()
}

// patternParts returns the texts between the percent signs of a pattern. Percent signs without a
// text in between are one.
func patternParts(pattern string) (parts []string, err error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%':
			if b.Len() > 0 || len(parts) == 0 {
				parts = append(parts, b.String())
				b.Reset()
			}
			continue
		case c == '_':
			return nil, errors.New(`like has no sign for a single character: write \_ for the character '_'`)
		case c == '\\':
			if i++; i == len(pattern) || strings.IndexByte(`%_\`, pattern[i]) < 0 {
				return nil, errors.New(`in a pattern a backslash comes before %, _, or another backslash`)
			}
		}
		b.WriteByte(pattern[i])
	}
	return append(parts, b.String()), nil
}

func (p *parser) isNull(e *Expr) (*Expr, error) {
	e.Op = IsNull
	if err := p.advance(); err != nil {
		return nil, err
	}
	not := p.token.is("not")
	if not {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return negated(e, not), p.expect("null")
}

// literal parses one literal and adds its cell to e.
func (p *parser) literal(e *Expr) error {
	c, err := p.constant()
	if err != nil {
		return err
	}
	return c.addTo(e)
}

// constant is a literal as written.
type constant struct {
	token
	mark string // date or timestamp: the word before the text
}

// constant reads the tokens of one literal.
func (p *parser) constant() (c constant, err error) {
	c.token = p.token
	if err := p.advance(); err != nil {
		return c, err
	}
	if (c.is("date") || c.is("timestamp")) && p.token.kind == text {
		c.mark, c.token = strings.ToLower(c.text), p.token
		return c, p.advance()
	}
	return c, nil
}

// addTo adds the cell of the literal to e.
func (c constant) addTo(e *Expr) error {
	value, err := literalCell(e.Column, c.token, c.mark)
	if errors.Is(err, errNoLiteral) {
		hint := ""
		if c.kind == word || c.kind == quoted {
			hint = fmt.Sprintf("; a text is written '%s'", strings.ReplaceAll(c.text, "'", "''"))
		}
		return fmt.Errorf("byte %d: want a literal, not %s%s", c.at+1, c.token, hint)
	}
	if err != nil {
		return fmt.Errorf("column %q: %w", e.Column.Name, err)
	}
	e.Cells = append(e.Cells, value)
	return nil
}

var errNoLiteral = errors.New("not a literal")

// literalCell returns the cell of column c for a literal. mark is the word before a text, or empty.
func literalCell(c *schema.Column, t token, mark string) ([]byte, error) {
	dst := make([]byte, 0, max(16, len(t.text)))
	switch {
	case mark == "date" && c.Type == schema.Date:
		return celltext.FromDate(dst, t.text)
	case mark == "timestamp" && c.Type == schema.Timestamp:
		if _, err := time.Parse(time.DateOnly, t.text); err == nil {
			return celltext.FromTime(dst, t.text+" 00:00:00") // as in SQL, a date is its first moment
		}
		return celltext.FromTime(dst, t.text)
	case mark != "":
		return nil, fmt.Errorf("type %s has no value %s '%s'", c.TypeName(), mark, t.text)
	case t.kind == number && numeric(c.Type):
		return celltext.FromNumber(dst, c, t.text)
	case t.kind == hexText && c.Type == schema.Binary:
		return celltext.FromHex(dst, t.text)
	case (t.is("true") || t.is("false")) && c.Type == schema.Bool:
		return celltext.FromBool(dst, t.is("true")), nil
	case t.kind == text:
		return textCell(dst, c, t.text)
	case t.is("null"):
		return nil, errors.New(`nothing equals NULL: write "is null" or "is not null"`)
	case t.kind == number, t.kind == hexText, t.is("true"), t.is("false"):
		return nil, fmt.Errorf("type %s has no value %s%s", c.TypeName(), t.text, quotesHint(c, t))
	}
	return nil, errNoLiteral
}

// quotesHint shows how to quote a text that was written without quotes.
func quotesHint(c *schema.Column, t token) string {
	if c.Type == schema.String || c.Type == schema.Varchar {
		return fmt.Sprintf("; a text is written '%s'", t.text)
	}
	return ""
}

func numeric(t schema.Type) bool {
	switch t {
	case schema.Bool, schema.String, schema.Varchar, schema.Binary, schema.Date, schema.Array:
		return false
	}
	return true
}

// textCell returns the cell for a quoted text: the text of a string, or of a decimal or unusual
// float, which JSON writes as a string.
func textCell(dst []byte, c *schema.Column, text string) ([]byte, error) {
	switch t := c.Type; {
	case t == schema.String || t == schema.Varchar:
		return celltext.FromText(dst, c, text)
	case t == schema.Float || t == schema.Double:
		return celltext.FromFloatName(dst, t, text)
	case t.Decimal():
		return celltext.FromDecimal(dst, c, text)
	case t == schema.Date:
		return nil, fmt.Errorf("a date is written date '%s'", text)
	case t == schema.Timestamp:
		return nil, fmt.Errorf("a time is written timestamp '%s'", text)
	case t == schema.Binary:
		return nil, errors.New("bytes are written 0x…")
	}
	return nil, fmt.Errorf("type %s has no value '%s'", c.TypeName(), text)
}
