package tablecmd

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// alteration applies one flag of table alter to the columns as the preceding flags left them, and
// returns the alteration for the store.
type alteration func(e *schema.Editor) (oribi.Alteration, error)

// alterFlag is a flag each use of which appends an alteration to a list shared by all such flags.
// They apply in the order in which they are given.
type alterFlag struct {
	name string
	list *[]alteration
	read func(e *schema.Editor, text string) (oribi.Alteration, error)
	last string // the value of the last use
}

func (f *alterFlag) String() string { return f.last }
func (f *alterFlag) Type() string   { return "string" }

func (f *alterFlag) Set(text string) error {
	f.last = text
	*f.list = append(*f.list, func(e *schema.Editor) (oribi.Alteration, error) {
		change, err := f.read(e, text)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--%s: %w", f.name, err))
		}
		return change, nil
	})
	return nil
}

// alterFlags are the flags of table alter.
var alterFlags = []struct {
	name, help string
	read       func(e *schema.Editor, text string) (oribi.Alteration, error)
}{
	{"add", "append a column: its JSON, as in a schema file", readAdd},
	{"drop", "drop the column of this name", func(e *schema.Editor, name string) (oribi.Alteration, error) {
		return oribi.DropColumn(name), e.Drop(name)
	}},
	{"rename", "rename a column: old=new", readRename},
	{"type", "change a column's type, in all rows: name=type; every value must fit; see: oribi help types", readType},
	{"default", "change a column's default for new rows: name=JSON; null for none", readDefault},
	{"encoding", "change a column's encoding in new files: name=encoding", readEncoding},
	{"compression", "change a column's compression in new files: name=codec", readCompression},
	{"history", "change how long old versions are kept: forever, 7d, 15m",
		func(_ *schema.Editor, text string) (oribi.Alteration, error) {
			age, err := when.ParseAge(text)
			return oribi.SetHistory(age), err
		}},
	{"row-file", "store rows a second time, for reads by key: auto, on, or off",
		func(_ *schema.Editor, text string) (oribi.Alteration, error) {
			f, ok := schema.ParseRowFile(text)
			if !ok {
				return nil, fmt.Errorf("%q: want auto, on, or off", text)
			}
			return oribi.SetRowFile(f), nil
		}},
	{"expires", "let rows expire by a timestamp column, after an age: c, c:7d, or none", readExpires},
	{"drop-index", "drop the index of this name; no other change",
		func(_ *schema.Editor, name string) (oribi.Alteration, error) { return oribi.DropIndex(name), nil }},
}

// Alter is the verb "oribi table alter".
func Alter(a *console.Console) *cobra.Command {
	var list []alteration
	var yes, unique bool
	c := verb.New(a, "alter DIR NAME", "Change a table's columns and settings, all or none",
		func(cmd *cobra.Command, args []string) error {
			if len(list) == 0 {
				return exit.Usage(fmt.Errorf("nothing to alter: use --add, --drop, --rename, --type, --default, " +
					"--encoding, --compression, --history, --row-file, --expires, --add-index, or --drop-index"))
			}
			if unique && !cmd.Flags().Changed("add-index") {
				return exit.Usage(errors.New("--unique needs --add-index"))
			}
			return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
				if err := keepHistory(t, cmd, yes); err != nil {
					return err
				}
				e := t.Schema().Edit(math.MaxInt32 - schema.MaxColumns - 1) // the store assigns the IDs
				var changes []oribi.Alteration
				for _, alter := range list {
					change, err := alter(e)
					if err != nil {
						return err
					}
					changes = append(changes, change)
				}
				return t.Alter(cmd.Context(), changes...)
			})
		})
	addIndex := func(_ *schema.Editor, text string) (oribi.Alteration, error) {
		name, columns, ok := strings.Cut(text, "=")
		switch {
		case !ok || name == "" || columns == "":
			return nil, fmt.Errorf("%q: want a name, = and columns", text)
		case unique:
			return oribi.AddUnique(name, strings.Split(columns, ",")...), nil
		}
		return oribi.AddIndex(name, strings.Split(columns, ",")...), nil
	}
	for _, f := range alterFlags {
		c.Flags().Var(&alterFlag{name: f.name, list: &list, read: f.read}, f.name, f.help)
	}
	c.Flags().Var(&alterFlag{name: "add-index", list: &list, read: addIndex}, "add-index",
		"add an index by columns, next to writers: name=column,column; no other change")
	c.Flags().BoolVar(&unique, "unique", false, "no two rows may have the same values in the columns of --add-index")
	c.Flags().BoolVar(&yes, "yes", false, "allow --history to drop old versions")
	return c
}

// keepHistory refuses, without yes, a --history that is shorter than the table's, since old
// versions are then lost for good.
func keepHistory(t *oribi.Table, cmd *cobra.Command, yes bool) error {
	flag := cmd.Flags().Lookup("history")
	if !flag.Changed || yes {
		return nil
	}
	now := t.Properties().History
	age, err := when.ParseAge(flag.Value.String())
	if err != nil || age == when.Forever || now != when.Forever && age >= now {
		return nil // the error is reported where the flag is applied
	}
	return exit.With(exit.Refused, fmt.Errorf("table %q was not changed: --history %s permanently drops versions that "+
		"%s keeps; add --yes to confirm",
		t.Name(), flag.Value, when.FormatAge(now)))
}

func readAdd(e *schema.Editor, text string) (oribi.Alteration, error) {
	c, err := schemafile.ReadColumn([]byte(text))
	if err == nil && c.Required() {
		err = fmt.Errorf("column %q: existing rows need a value: add \"nullable\":true, or a \"default\"", c.Name)
	}
	if err != nil {
		return nil, err
	}
	return oribi.AddColumn(c), e.Add(c)
}

func readRename(e *schema.Editor, text string) (oribi.Alteration, error) {
	from, to, err := flags.Pair(text)
	if err != nil {
		return nil, err
	}
	return oribi.RenameColumn(from, to), e.Rename(from, to)
}

func readType(e *schema.Editor, text string) (oribi.Alteration, error) {
	name, word, err := flags.Pair(text)
	if err != nil {
		return nil, err
	}
	var to schema.Column
	if err := to.ParseTypeName(word); err != nil {
		return nil, err
	}
	_, _, err = e.Retype(name, to, nil) // the store converts the default
	return oribi.SetType(name, to), err
}

func readDefault(e *schema.Editor, text string) (oribi.Alteration, error) {
	name, value, err := flags.Pair(text)
	if err != nil {
		return nil, err
	}
	var initial []byte
	err = e.Set(name, func(c *schema.Column) error {
		json := jsonin.Trim([]byte(value))
		if err := jsonin.Check(json); err != nil {
			return err
		}
		if !jsonin.IsNull(json) {
			if initial, err = cell.FromJSON([]byte{}, c, json); err != nil {
				return err
			}
		}
		c.Default = initial
		return nil
	})
	return oribi.SetDefaultCell(name, initial), err
}

func readEncoding(e *schema.Editor, text string) (oribi.Alteration, error) {
	name, word, err := flags.Pair(text)
	if err != nil {
		return nil, err
	}
	encoding, err := schemafile.ParseEncoding(word)
	if err != nil {
		return nil, err
	}
	return oribi.SetEncoding(name, encoding), e.Set(name, func(c *schema.Column) error {
		c.Encoding = encoding
		return nil
	})
}

func readCompression(e *schema.Editor, text string) (oribi.Alteration, error) {
	name, word, err := flags.Pair(text)
	if err != nil {
		return nil, err
	}
	codec, err := schemafile.ParseCompression(word)
	if err != nil {
		return nil, err
	}
	return oribi.SetCompression(name, codec), e.Set(name, func(c *schema.Column) error {
		c.Compression = codec
		return nil
	})
}

func readExpires(e *schema.Editor, text string) (oribi.Alteration, error) {
	x, err := schemafile.ParseExpires(text, func(name string) bool {
		return e.Set(name, func(*schema.Column) error { return nil }) == nil
	})
	if x.Column == "" || err != nil {
		return oribi.ClearExpires(), err
	}
	return oribi.SetExpires(x.Column, x.Age), e.Set(x.Column, schemafile.CheckExpires)
}

// This compiles only if package when, which does not import the store, has the same constant.
var _ = [1]struct{}{}[when.Forever-oribi.HistoryForever]
