package where

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	end     kind = iota
	word         // bare name or keyword
	quoted       // name in double quotes; text excludes them
	number       // digits, with sign, point and exponent as written
	text         // string in single quotes; text excludes them
	hexText      // 0x…; text includes the prefix
	symbol       // = == != <> < <= > >= ( ) , and in arithmetic + - *
)

type token struct {
	kind kind
	text string
	at   int // byte offset in the expression
}

func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

// is reports whether t is the keyword, in any case.
func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.text, keyword) }

type lexer struct {
	input      string
	pos        int
	arithmetic bool // + - * are symbols, and no sign is part of a number
}

func isLetter(b byte) bool { return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }
func isDigit(b byte) bool  { return b >= '0' && b <= '9' }
func isHex(b byte) bool    { return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }

// peek returns the byte n positions ahead, 0 past the end.
func (l *lexer) peek(n int) byte {
	if l.pos+n < len(l.input) {
		return l.input[l.pos+n]
	}
	return 0
}

// pass advances while ok returns true.
func (l *lexer) pass(ok func(byte) bool) {
	for l.pos < len(l.input) && ok(l.input[l.pos]) {
		l.pos++
	}
}

func (l *lexer) next() (token, error) {
	l.pass(func(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' })
	from := l.pos
	if from == len(l.input) {
		return token{kind: end, at: from}, nil
	}
	switch b := l.input[from]; {
	case isLetter(b):
		l.pass(func(b byte) bool { return isLetter(b) || isDigit(b) })
		return token{word, l.input[from:l.pos], from}, nil
	case b == '0' && l.peek(1) == 'x':
		l.pos += 2
		l.pass(isHex)
		return l.ended(token{hexText, l.input[from:l.pos], from})
	case isDigit(b), b == '-' && isDigit(l.peek(1)) && !l.arithmetic:
		l.passNumber()
		return l.ended(token{number, l.input[from:l.pos], from})
	case b == '\'':
		return l.enclosed(text)
	case b == '"':
		return l.enclosed(quoted)
	case l.arithmetic && strings.IndexByte("+-*", b) >= 0:
		l.pos++
		return token{symbol, l.input[from:l.pos], from}, nil
	case strings.IndexByte("=<>(),", b) >= 0, b == '!' && l.peek(1) == '=':
		l.pos++
		if next := l.peek(0); next == '=' && strings.IndexByte("!=<>", b) >= 0 || b == '<' && next == '>' {
			l.pos++
		}
		return token{symbol, l.input[from:l.pos], from}, nil
	}
	r, _ := utf8.DecodeRuneInString(l.input[from:])
	return token{}, fmt.Errorf("byte %d: unexpected %q", from+1, r)
}

// ended refuses a literal that is directly followed by a letter or digit.
func (l *lexer) ended(t token) (token, error) {
	if b := l.peek(0); isLetter(b) || isDigit(b) || b == '.' {
		return t, fmt.Errorf("byte %d: want a blank after %q, not %q", t.at+1, t.text, b)
	}
	return t, nil
}

func (l *lexer) passNumber() {
	l.pos++ // a digit, or the sign before one
	l.pass(isDigit)
	if l.peek(0) == '.' && isDigit(l.peek(1)) {
		l.pos++
		l.pass(isDigit)
	}
	sign := 0
	if b := l.peek(1); b == '+' || b == '-' {
		sign = 1
	}
	if b := l.peek(0); (b == 'e' || b == 'E') && isDigit(l.peek(1+sign)) {
		l.pos += 1 + sign
		l.pass(isDigit)
	}
}

// enclosed reads the text between two of the quotes at pos; a doubled quote is a quote in the text.
func (l *lexer) enclosed(k kind) (token, error) {
	from, quote := l.pos, l.input[l.pos]
	var b strings.Builder
	for l.pos++; l.pos < len(l.input); l.pos++ {
		if l.input[l.pos] != quote {
			b.WriteByte(l.input[l.pos])
			continue
		}
		if l.peek(1) != quote {
			l.pos++
			return token{k, b.String(), from}, nil
		}
		b.WriteByte(quote)
		l.pos++
	}
	return token{}, fmt.Errorf("byte %d: the %c that opens here is not closed", from+1, quote)
}
