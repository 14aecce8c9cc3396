package bind

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// A tag is one option after another: what a comma ends, and what not.
func TestOptionsOfTags(t *testing.T) {
	for tag, want := range map[string]string{
		"a": "a", "a,b": "a|b", "": "", "a,": "a|", ",a": "|a", "a,,b": "a||b",
		"decimal(18,2)": "decimal(18,2)", "key,decimal(18,2),date": "key|decimal(18,2)|date", "a,f(1,2": "a|f(1,2",
		"default='1,5',key": "default='1,5'|key", "default='it''s, so'": "default='it''s, so'",
		"default=(1,key": "default=(1|key", "default='(',date": "default='('|date", "default='',x": "default=''|x",
		"a(,)": "a(,)", "f(1,)x,y": "error", "default='a": "error", "default='a'b": "error", "default='''": "error",
	} {
		var got []string
		for rest, found := tag, true; found; {
			var option string
			var err error
			if option, rest, found, err = cutOption(rest); err != nil {
				got = []string{"error"}
				break
			}
			got = append(got, option)
		}
		must.Equal(t, strings.Join(got, "|"), want, tag)
	}
}

// Any text of a tag gives a valid column or an error.
func FuzzTags(f *testing.F) {
	for i, tag := range []string{"a,key", ",auto", "n,decimal(18,2),default=1.50", "s,default='a,''b',index=x,index",
		"t,expires=1h", "s,varchar(3),enc=dict,unique", "x,default='", "x,(", "x,decimal(", "-,key", "x,,",
		"b,default=0x0g", `w,default='["a"]'`} {
		f.Add(tag, uint8(i))
	}
	types := []reflect.Type{reflect.TypeFor[int64](), reflect.TypeFor[string](), reflect.TypeFor[*time.Time](),
		reflect.TypeFor[batch.Decimal](), reflect.TypeFor[[]byte](), reflect.TypeFor[[]*string](), reflect.TypeFor[bool]()}
	fuzztest.Run(f, func(t *testing.T, text string, kind uint8) {
		field := reflect.StructField{Name: "F", Type: types[int(kind)%len(types)],
			Tag: reflect.StructTag("oribi:" + strconv.Quote(text))}
		name, o, err := parseTag(field)
		if err != nil {
			return
		}
		tag := fieldTag{text: "T.F", typ: field.Type, name: name, tagOptions: o}
		c, err := tag.column()
		if err != nil {
			must.Contain(t, err.Error(), "T.F")
			return
		}
		columns := []schema.Column{{Name: c.Name + "k", ID: 1, Type: schema.Int64, Key: true}, c}
		if c.Key {
			columns = columns[1:]
		}
		if len(c.Name) < schema.MaxNameBytes {
			must.Do(t, must.Err(schema.New(columns)))
		}
		must.Do(t, Check(&c, c.Default))
		rows := &RowType{tags: []fieldTag{tag}}
		must.Equal(t, rows.Indexes() == nil, !o.unique && o.indexes == nil)
	})
}
