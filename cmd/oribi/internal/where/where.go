// Package where reads the expressions by which the command selects rows.
//
//	expression = test { "and" test }
//	test       = column ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) literal
//	           | column "in" "(" literal { "," literal } ")"
//	           | column "is" [ "not" ] "null"
//	column     = name | '"' text '"'
//	literal    = number | "'" text "'" | "true" | "false" | "0x…"
//	           | "date" "'…'" | "timestamp" "'…'"
//
// Words stand in any case. Each test becomes one batch.Predicate. A literal must be a value that
// the column can hold, exactly; of floats the nearest is taken. There is no "or", no "not" before a
// test and no bracket around one: the engine joins predicates by "and" alone.
package where

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/cell"
	"github.com/oribi-db/oribi/schema"
)

// Parse reads an expression on the columns of s. Errors name the column or the byte.
func Parse(s *schema.Schema, expression string) ([]batch.Predicate, error) {
	p := parser{schema: s, lexer: lexer{input: expression}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var tests []batch.Predicate
	for {
		test, err := p.test()
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
		if p.token.kind == end {
			return tests, nil
		}
		if p.token.is("or") || p.token.is("not") {
			return nil, p.unsupported()
		}
		if !p.token.is("and") {
			return nil, p.unexpected(`"and"`)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

type parser struct {
	schema *schema.Schema
	lexer  lexer
	token  token // the one to look at
}

func (p *parser) advance() (err error) {
	p.token, err = p.lexer.next()
	return err
}

func (p *parser) unexpected(want string) error {
	return fmt.Errorf("byte %d: want %s, not %s", p.token.at+1, want, p.token)
}

func (p *parser) unsupported() error {
	return fmt.Errorf(`byte %d: %s is not supported: tests are joined by "and" alone`, p.token.at+1, p.token)
}

// expect passes over a symbol or keyword that must stand here.
func (p *parser) expect(what string) error {
	if !p.token.is(what) && (p.token.kind != symbol || p.token.text != what) {
		return p.unexpected(fmt.Sprintf("%q", what))
	}
	return p.advance()
}

var operators = map[string]batch.Operator{"=": batch.Eq, "!=": batch.Ne, "<": batch.Lt, "<=": batch.Le, ">": batch.Gt, ">=": batch.Ge}

func (p *parser) test() (batch.Predicate, error) {
	column, err := p.column()
	if err != nil {
		return batch.Predicate{}, err
	}
	test := batch.Predicate{Column: column.Name, ID: column.ID, Type: column.Type}
	op, compares := operators[p.token.text]
	switch {
	case p.token.kind == symbol && compares:
		test.Op = op
		err = p.advance()
		if err == nil {
			err = p.literal(column, &test)
		}
	case p.token.is("in"):
		test.Op = batch.In
		err = p.list(column, &test)
	case p.token.is("is"):
		test.Op, err = p.isNull()
	default:
		err = p.unexpected("= != < <= > >= in is")
	}
	return test, err
}

func (p *parser) column() (*schema.Column, error) {
	if p.token.is("or") || p.token.is("not") || p.token.kind == symbol && p.token.text == "(" {
		return nil, p.unsupported()
	}
	if p.token.kind != word && p.token.kind != quoted {
		return nil, p.unexpected("a column")
	}
	i := p.schema.Index(p.token.text)
	if i < 0 {
		return nil, fmt.Errorf("column %q: no such column", p.token.text)
	}
	return &p.schema.Columns[i], p.advance()
}

// list reads what follows a column tested by "in".
func (p *parser) list(column *schema.Column, test *batch.Predicate) error {
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.expect("("); err != nil {
		return err
	}
	for {
		if err := p.literal(column, test); err != nil {
			return err
		}
		if p.token.kind != symbol || p.token.text != "," {
			return p.expect(")")
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

func (p *parser) isNull() (batch.Operator, error) {
	if err := p.advance(); err != nil {
		return 0, err
	}
	op := batch.IsNull
	if p.token.is("not") {
		op = batch.NotNull
		if err := p.advance(); err != nil {
			return 0, err
		}
	}
	return op, p.expect("null")
}

// literal reads one literal and adds its cell to the test's values.
func (p *parser) literal(column *schema.Column, test *batch.Predicate) error {
	t := p.token
	if err := p.advance(); err != nil {
		return err
	}
	if t.kind == symbol && t.text == "(" {
		return fmt.Errorf("byte %d: brackets are not supported here", t.at+1)
	}
	mark := "" // date or timestamp, before the text
	if (t.is("date") || t.is("timestamp")) && p.token.kind == text {
		mark = strings.ToLower(t.text)
		t = p.token
		if err := p.advance(); err != nil {
			return err
		}
	}
	value, err := literalCell(column, t, mark)
	if errors.Is(err, errNoLiteral) {
		return fmt.Errorf("byte %d: want a literal, not %s", t.at+1, t)
	}
	if err != nil {
		return fmt.Errorf("column %q: %w", column.Name, err)
	}
	test.Values = append(test.Values, value)
	return nil
}

var errNoLiteral = errors.New("no literal")

// literalCell makes the cell of column c that the literal stands for. mark is the word before a
// text, or empty.
func literalCell(c *schema.Column, t token, mark string) ([]byte, error) {
	dst := make([]byte, 0, max(16, len(t.text)))
	switch {
	case mark == "date" && c.Type == schema.Date:
		return cell.FromDate(dst, t.text)
	case mark == "timestamp" && c.Type == schema.Timestamp:
		return cell.FromTime(dst, t.text)
	case mark != "":
		return nil, fmt.Errorf("type %s holds no %s", c.TypeName(), mark)
	case t.kind == number && numeric(c.Type):
		return cell.FromNumber(dst, c, t.text)
	case t.kind == hexText && c.Type == schema.Binary:
		return cell.FromHex(dst, t.text)
	case (t.is("true") || t.is("false")) && c.Type == schema.Bool:
		return cell.FromBool(dst, t.is("true")), nil
	case t.kind == text:
		return textCell(dst, c, t.text)
	case t.is("null"):
		return nil, errors.New(`NULL equals nothing: write "is null" or "is not null"`)
	case t.kind == number, t.kind == hexText, t.is("true"), t.is("false"):
		return nil, fmt.Errorf("type %s cannot hold %s", c.TypeName(), t.text)
	}
	return nil, errNoLiteral
}

func numeric(t schema.Type) bool {
	switch t {
	case schema.Bool, schema.String, schema.Varchar, schema.Binary, schema.Date, schema.Array:
		return false
	}
	return true
}

// textCell is the cell of a quoted text: of strings itself, of decimals and unusual floats what
// JSON writes as a string.
func textCell(dst []byte, c *schema.Column, text string) ([]byte, error) {
	switch t := c.Type; {
	case t == schema.String || t == schema.Varchar:
		return cell.FromText(dst, c, text)
	case t == schema.Float || t == schema.Double:
		return cell.FromFloatName(dst, t, text)
	case t.Decimal():
		return cell.FromDecimal(dst, c, text)
	case t == schema.Date:
		return nil, fmt.Errorf("a date is written date '%s'", text)
	case t == schema.Timestamp:
		return nil, fmt.Errorf("a time is written timestamp '%s'", text)
	case t == schema.Binary:
		return nil, errors.New("bytes are written 0x…")
	}
	return nil, fmt.Errorf("type %s cannot hold '%s'", c.TypeName(), text)
}
