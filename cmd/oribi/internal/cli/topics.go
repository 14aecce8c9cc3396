package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
)

// topic is a page of help that belongs to no command: one of the languages of arguments and files.
type topic struct{ name, short, text string }

// topics are the pages, in the order in which help lists them.
var topics = []topic{
	{"types", "column types, and how their values are written", `A column has one of these types:

  bool                            true, false
  int8 int16 int32 int64 int128   digits
  uint8 uint16 uint32 uint64      digits
  float double                    digits; "NaN" "+Inf" "-Inf"
  decimal(p,s)                    "1.50": p digits, s of them after the point
  string varchar(n)               text in UTF-8, a varchar of n characters
  binary                          "0x…"
  date                            "2026-11-21"
  timestamp                       microseconds since 1970, or
                                  "2026-11-21T10:00:00Z", or
                                  "2026-11-21 10:00:00", which is UTC
  array(TYPE)                     [1,null,3]

bool, float, double, and arrays cannot be in a key. JSON output has timestamps
as integers; tables and CSV have them as RFC 3339. NULL is null in JSON and an
empty field in CSV; "" is the empty string.
`},
	{"schema", "the schema file of table create", `A schema file is one JSON object:

  {"columns":[
    {"name":"path","type":"string","key":true},
    {"name":"size","type":"int64","nullable":true,"default":0,
     "encoding":"auto","compression":"default","block_size":0,"comment":"bytes"}],
   "history":"7d","comment":"a row for each file"}

A column needs a name and a type (oribi help types). The key columns come
first, and there is at least one. The defaults are: not in the key, not
nullable, no default, encoding auto, compression default.

  encodings      auto plain rle bitshuffle dict prefix
  compressions   default none snappy lz4 zlib; lz4hc and dense take less
                 space, after table compact --kind recompress or a day
  history        how long old versions are kept: forever, 7d, 15m
  row_file       true: each row is also stored as one piece, for reads by key
  expires        {"column":"seen","age":"30d"}: rows are absent 30 days after the
                 time in that column; without age, from that time on
  indexes        [{"name":"by_size","columns":["size"],"unique":false}]: finds
                 rows by these columns; unique: no two rows have the same values

For rows without a key of their own, this column numbers them; it may be the
whole key, and table load --key auto makes it:

    {"name":"auto_incrementing_id","type":"int64","key":true,
     "auto_incrementing":true}

oribi table describe DIR NAME --format json prints a table's schema in this
form, and oribi table load DIR NAME FILE --create --key COLUMN --dry-run that
of a table for a file.
`},
	{"batch", "a line of oribi apply: a write batch", `Each line is one atomic write batch, a JSON object with its operations in
order:

  {"ops":[{"op":"upsert","table":"tree","row":{"path":"a.txt","size":1}},
          {"op":"delete","table":"tree","key":{"path":"b.txt"}}]}

(on one line). An op is insert, upsert, update, or delete; insert_ignore,
upsert_ignore, update_ignore, and delete_ignore skip rows that those would
refuse. Deletes have a key, all others a row. If a row does not name a column,
an insert uses the column's default, or NULL; an update, and an upsert of an
existing row, leave the column unchanged.

Updates and upserts compute a column's new value from an operand:

  {"ops":[{"op":"upsert","table":"hits","row":{"page":"/","n":{"$add":1}}}]}

Operands are $add, $min, $max, $set_if_null, and $append (of strings). If the
column is NULL, or neither the row nor a default of the column exists, the new
value is that of the operand.
`},
	{"expr", "EXPR, the condition of --where", `An EXPR is one or more tests with and, or, not, and parentheses:

  size > 1000 and (path like 'src/%' or mode in ('100755', '120000'))

  column = != < <= > >= literal          == and <> are synonyms of = and !=
  column between literal and literal     both ends included
  column in (literal, …)
  literal < column                       a literal may also come first
  column like '%part%'                   or 'prefix%', '%suffix'; % is any text,
                                         \% \_ \\ are the characters % _ \
  column is null, column is not null     also: not in, not between, not like

Literals are numbers, 'text' ('' is a quote), true, false, 0x…, date
'2026-01-01', and timestamp '2026-01-01T00:00:00Z', or timestamp '2026-01-01'
for the first moment of the day. Write a column name that is not a plain word
"in quotes". not binds more tightly than and, and binds more tightly than or.
As in SQL, a comparison with NULL is neither true nor false; use is null.
`},
	{"sum", "what --sum of table agg adds up", `The argument of --sum is a column, or factors with * between them:

  quantity
  price * quantity
  price * (1 - discount) * (1 + tax)

A factor is a column, or in parentheses a column and a number, added or
subtracted: (1 - tax), (tax - 1), (100 - 2 * tax). Numbers have no exponent.
Write a column name that is not a plain word "in quotes", unless it is the
whole argument.

A sum of integers or decimals is exact, with all decimals of its factors, or an
error if it has more than 38 digits. A sum of a product with a float is rounded.
NULLs are left out; the sum of nothing is NULL.
`},
	{"ts", "TS, a point in time", `A TS is one of

  7353486357494956032         a timestamp returned by the store
  2026-11-21T10:00:00Z        RFC 3339, to the end of that microsecond
  2026-11-21 10:00:00         the same in UTC, also with a T
  2026-11-21                  the end of that day, UTC
  -90s -5m -2h -7d            before now
  now                         the current time
  latest                      the newest state
  0                           the beginning of time

A read includes the time that it names. oribi time TS converts between
timestamps and clock time.
`},
	{"csv", "CSV, as load reads it and scan prints it", `The first line contains the column names, every other line one row. Fields
are separated by commas (tabs in .tsv files; --delimiter changes this). A field
that contains the delimiter, a quote (doubled), or a newline must be in quotes.
An empty field is not set: it gets the column's default, or NULL. "" is the
empty string. Values are written as in JSON, but without quotes.

load --create chooses for each column the first of the types bool, int64,
decimal, double, date, and timestamp that keeps every value, or string if there
is none. It keeps the text of each value, too, but for the zeros at the end of a
fraction, the case of True, and the form of a time in UTC (+00:00, a space for
the T); --exact keeps all of the text.

A bool may be true, True, TRUE, t, T, or 1, a double inf, -inf, or nan. An empty
field in a key is an error; for rows without a key, --key auto makes one.

--header a,b,c names the columns, also in place of a header in which a name is
empty or appears twice; --columns then chooses some of them. Lines end in LF,
CR LF, or, if the first one does, CR.
`},
	{"json", "JSON, as load reads it and scan prints it", `Each line is one JSON object, a row, or the file is one array of objects, which
may be spread over lines. The names of the objects are the columns, and load
--columns a,b reads only these. Blank lines are skipped. What is missing is not
set: it gets the column's default, or NULL; null is NULL.

load --create chooses the types as for CSV, except that a number is never a
string: a column of numbers is int64, a decimal or int128 if a double would
round one of them, else double. An object or an array becomes the text of a
string column, without spaces; --type 'a=array(int64)' makes it an array.

See: oribi help types, oribi help csv.
`},
}

// findTopic returns a page by its name.
func findTopic(name string) (topic, bool) {
	for _, t := range topics {
		if t.name == name {
			return t, true
		}
	}
	return topic{}, false
}

func topicNames() []string {
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].name
	}
	return names
}

// appendTopics lists the pages.
func appendTopics(b *strings.Builder) {
	b.WriteString("\nPages, oribi help PAGE:\n")
	for _, t := range topics {
		fmt.Fprintf(b, "  %-8s  %s\n", t.name, t.short)
	}
}

// printTopic prints a page.
func printTopic(a *console.Console, t topic) error {
	_, err := fmt.Fprintf(a.Stdout, "%s\n", t.text[:len(t.text)-1])
	return err
}

// helpNames are the words that may follow the words of a help command.
func helpNames(root *cobra.Command, args []string) []string {
	var names []string
	if c, err := find(root, args); err == nil {
		for _, sub := range visible(c) {
			names = append(names, sub.Name())
		}
	}
	if len(args) == 0 {
		names = append(names, topicNames()...)
	}
	return names
}
