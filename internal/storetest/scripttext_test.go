package storetest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// splitCommand returns the words of the commands in a line. Text in single quotes is one word, and
// so is text in double quotes, which has Go's escapes.
func splitCommand(line string) (commands [][]string) {
	var words []string
	word, within := "", false
	end := func() {
		if within {
			words, word, within = append(words, word), "", false
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ':
			end()
		case ';':
			end()
			commands, words = append(commands, words), nil
		case '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			word, within, i = word+line[i+1:i+1+n], true, i+1+n
		case '"':
			quoted, err := strconv.QuotedPrefix(line[i:])
			if err != nil {
				panic(line)
			}
			text, _ := strconv.Unquote(quoted)
			word, within, i = word+text, true, i+len(quoted)-1
		default:
			word, within = word+line[i:i+1], true
		}
	}
	end()
	return append(commands, words)
}

// arguments are the words of a command, without its name: words, and pairs name=value.
type arguments struct {
	raw   []string // all of them
	words []string
	pairs [][2]string
}

func parseArguments(words []string) (a arguments) {
	a.raw = words
	for _, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok {
			a.pairs = append(a.pairs, [2]string{name, value})
		} else {
			a.words = append(a.words, w)
		}
	}
	return a
}

func (a *arguments) word(i int) string {
	if i >= len(a.words) {
		return ""
	}
	return a.words[i]
}

func (a *arguments) has(word string) bool { return slices.Contains(a.words, word) }

func (a *arguments) value(name string) (string, bool) {
	for _, p := range a.pairs {
		if p[0] == name {
			return p[1], true
		}
	}
	return "", false
}

// value returns the value that a word is in a column: a cell, or a number or text if the column
// cannot have it.
func value(c *schema.Column, word string) any {
	if word == "NULL" {
		return nil
	}
	if list, ok := strings.CutPrefix(word, "["); ok && c.Type == schema.Array {
		element, cells := c.Elements(), [][]byte(nil)
		for w := range strings.FieldsFuncSeq(strings.TrimSuffix(list, "]"), func(r rune) bool { return r == ',' }) {
			cell, ok := value(&element, w).(oribi.Cell)
			if !ok && w != "NULL" {
				return word
			}
			cells = append(cells, cell)
		}
		return oribi.Cell(schema.AppendArray(nil, element.Type, cells))
	}
	cell, err := celltext.FromField(nil, c, []byte(word))
	if err != nil {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return n
		}
		return word
	}
	return oribi.Cell(append([]byte{}, cell...))
}

// key returns the key, or the first columns of a key, that a word is, with commas between columns.
func (s *scripted) key(word string) any {
	var key oribi.Key
	columns := s.table.Schema().Columns
	for i, part := range strings.Split(word, ",") {
		key = append(key, value(&columns[i], part))
	}
	return key
}

var (
	numbersWord = regexp.MustCompile(`^-?\d+(\.\.-?\d+|(\|-?\d+)+)$`)
	counterWord = regexp.MustCompile(`@((?:[-+*/%]-?\d+)*)`)
	calculation = regexp.MustCompile(`[-+*/%]-?\d+`)
)

// rows returns the rows that pairs describe. A value 1..9 stands for nine rows, and 1|5 for two; in
// them, @ in another value is the number, and @*10%3 what is calculated from it, from left to right.
func (s *scripted) rows(columns *schema.Schema, pairs [][2]string) (rows []oribi.Row) {
	numbers := []int{0}
	at := slices.IndexFunc(pairs, func(p [2]string) bool { return numbersWord.MatchString(p[1]) })
	if at >= 0 {
		numbers = nil
		first, last, isSpan := strings.Cut(pairs[at][1], "..")
		for _, word := range strings.Split(first, "|") {
			numbers = append(numbers, must.Get(strconv.Atoi(word))(s.t))
		}
		for isSpan && len(numbers) <= must.Get(strconv.Atoi(last))(s.t)-numbers[0] {
			numbers = append(numbers, numbers[0]+len(numbers))
		}
	}
	for _, n := range numbers {
		row := oribi.Row{}
		for i, p := range pairs {
			word := p[1]
			if i == at {
				word = strconv.Itoa(n)
			} else if at >= 0 {
				word = counterWord.ReplaceAllStringFunc(word, func(w string) string { return calculated(n, w) })
			}
			row[p[0]] = any(word)
			if c := columns.Index(p[0]); c >= 0 {
				row[p[0]] = value(&columns.Columns[c], s.wallTime(word))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func calculated(n int, word string) string {
	for _, op := range calculation.FindAllString(word, -1) {
		x, _ := strconv.Atoi(op[1:])
		n = map[byte]func() int{'-': func() int { return n - x }, '+': func() int { return n + x },
			'*': func() int { return n * x }, '/': func() int { return n / x }, '%': func() int { return n % x }}[op[0]]()
	}
	return strconv.Itoa(n)
}

// wallTime replaces now, now+1h, or now-1h, by the time.
func (s *scripted) wallTime(word string) string {
	if rest, ok := strings.CutPrefix(word, "now"); ok {
		if rest == "" {
			rest = "0s"
		}
		if d, err := time.ParseDuration(rest); err == nil {
			return s.wall.time().Add(d).Format(time.RFC3339Nano)
		}
	}
	return word
}

// rowText returns the text of a row.
func rowText(columns []schema.Column, cells [][]byte) string {
	if cells == nil {
		return "none"
	}
	var words []string
	for i := range columns {
		text := "NULL"
		if cells[i] != nil {
			if text = string(celltext.AppendText(nil, &columns[i], cells[i])); text == "" ||
				strings.ContainsAny(text, " ;'\"") || strconv.Quote(text) != `"`+text+`"` {
				text = strconv.Quote(text)
			}
		}
		words = append(words, columns[i].Name+"="+text)
	}
	return strings.Join(words, " ")
}

// list prints texts in one line if they fit.
func (s *scripted) list(texts []string, none string) {
	line := strings.Join(texts, "; ")
	switch {
	case len(texts) == 0:
		s.print("%s", none)
	case len(line) <= 110:
		s.print("%s", line)
	default:
		s.out = append(s.out, texts...)
	}
}

var timeWord = regexp.MustCompile(`^([a-z]\w*)([-+]\w+)?$`)

// timestamp parses a timestamp: a number, a name, now, floor, visible, max, or one of them and
// a number or, after now, a duration.
func (s *scripted) timestamp(word string) mvcc.Timestamp {
	m := timeWord.FindStringSubmatch(word)
	if m == nil {
		return mvcc.Timestamp(must.Get(strconv.ParseUint(word, 10, 64))(s.t))
	}
	ts, ok := s.times[m[1]]
	if m[1] == "now" {
		d, err := time.ParseDuration(strings.TrimPrefix(m[2], "+"))
		if err != nil && m[2] != "" {
			s.t.Fatal(word)
		}
		return mvcc.EndOf(s.wall.time().Add(d))
	}
	switch {
	case ok:
	case m[1] == "floor":
		ts = s.table.Properties().HistoryFloor
	case m[1] == "visible":
		ts = s.store.Visible()
	case m[1] == "max":
		ts = mvcc.Max
	default:
		s.t.Fatalf("no timestamp has the name %s", word)
	}
	if m[2] != "" {
		ts += mvcc.Timestamp(must.Get(strconv.ParseInt(m[2], 10, 64))(s.t))
	}
	return ts
}

// timeText returns the text of a timestamp: its number, its name, or when it is.
func (s *scripted) timeText(ts mvcc.Timestamp) string {
	if s.logical {
		return fmt.Sprint(uint64(ts))
	}
	for name, named := range s.times {
		if named == ts {
			return name
		}
	}
	if ts == 0 {
		return "0"
	}
	return fmt.Sprint("+", ts.Time().Sub(newFakeWall().now))
}

// tableOf creates a table. Its columns are separated by spaces: see parseColumn.
func tableOf(
	t testing.TB, store *oribi.Store, name, columns string, opts ...oribi.TableOption,
) *oribi.Table {
	t.Helper()
	return must.Get(store.CreateTable(name, must.Get(parseSchema(strings.Fields(columns)))(t), opts...))(t)
}

func parseSchema(words []string) (*schema.Schema, error) {
	var columns []schema.Column
	keys := 0
	for _, w := range words {
		c, key, err := parseColumn(w)
		if err != nil {
			return nil, err
		}
		if columns = append(columns, c); key {
			keys++
		}
	}
	return schema.New(columns, keys)
}

// parseColumn parses a column of create or add: name:type, with * after the name of a key column, ?
// after a type that allows NULL, ! after a type of an immutable column, and = before a default.
func parseColumn(word string) (c schema.Column, key bool, err error) {
	word, def, has := strings.Cut(word, "=")
	name, typ, _ := strings.Cut(word, ":")
	c.Name, key = strings.CutSuffix(name, "*")
	typ, c.Immutable = strings.CutSuffix(typ, "!")
	typ, c.Nullable = strings.CutSuffix(typ, "?")
	c.AutoIncrement = c.Name == schema.AutoIncrementName
	if err := c.ParseTypeName(typ); err != nil {
		return c, key, err
	}
	if has {
		c.Default, _ = value(&c, def).(oribi.Cell)
	}
	return c, key, err
}
