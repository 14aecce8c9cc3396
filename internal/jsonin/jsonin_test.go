package jsonin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fuzztest"
)

func TestCheckRefusesMalformedJSON(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, `byte 1: not JSON: no value`},
		{`{"a":1,"a":2}`, `byte 8: the name "a" appears twice`},
		{`{"ops":[{"row":{"x":1,"x":2}}]}`, `byte 23: the name "x" appears twice`},
		{"\"\xff\"", `invalid UTF-8`},
		{`"\ud800"`, `byte 2: not JSON`},
		{`"\ud800x"`, `byte 2: not JSON`},
		{`{"a":1} x`, `byte 8: not JSON: text after the value`},
		{`{"a":1}{}`, `byte 8: not JSON: text after the value`},
		{`{"a":01}`, `byte 7: not JSON`},
		{`{'a':1}`, `byte 2: not JSON`},
		{`{"a":1,}`, `byte 8: not JSON`},
		{`{"a":1`, `byte 7: not JSON`},
		{`[NaN]`, `byte 2: not JSON`},
	} {
		err := Check([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestErrorHasPathToValue(t *testing.T) {
	err := Check([]byte(`{"ops":[{},{"row":{"x":1,"x":2}}]}`))
	e, ok := err.(*Error)
	if !ok || strings.Join(e.Path, "/") != "ops/1/row/x" {
		t.Fatalf("got %#v", err)
	}
}

// flat formats a walked value for comparison.
func flat(b *strings.Builder, value []byte) {
	switch value[0] {
	case '{', '[':
		b.WriteByte(value[0])
		for w := Walk(value); w.Next(); {
			if w.Name != nil {
				fmt.Fprintf(b, "%s=", w.Name)
			}
			flat(b, w.Value)
			b.WriteByte(';')
		}
	case '"':
		fmt.Fprintf(b, "<%s>", String(value))
	default:
		b.Write(value)
	}
}

func TestWalkVisitsMembersInOrder(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{}`, `{`},
		{`[ ]`, `[`},
		{`{"a":1,"b":"x"}`, `{a=1;b=<x>;`},
		{` { "a" : -1.5e3 , "b" : [ true , null ] } `, `{a=-1.5e3;b=[true;null;;`},
		{`{"a\"b":"}\\","c":{"d":[{"e":"]"}]}}`, `{a"b=<}\>;c={d=[{e=<]>;;;;`},
		{`["é","\u00e9","\ud83d\ude00","a\\"]`, `[<é>;<é>;<😀>;<a\>;`},
		{"[1\n,\t2\r]", `[1;2;`},
		{`[[],{},""]`, `[[;{;<>;`},
	} {
		text := Trim([]byte(c.text))
		if err := Check(text); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		var b strings.Builder
		flat(&b, text)
		if b.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.text, b.String(), c.want)
		}
	}
}

// Any text that passes Check can be walked to its end.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\""}],"c":null}`))
	fuzztest.Run(f, func(t *testing.T, text []byte) {
		text = Trim(text)
		if Check(text) == nil {
			flat(new(strings.Builder), text)
		}
	})
}
