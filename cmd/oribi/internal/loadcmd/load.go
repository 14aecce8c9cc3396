// Package loadcmd has the verb "oribi table load" with its formats.
package loadcmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/infer"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/tablecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Load is the verb "oribi table load".
func Load(a *console.Console) *cobra.Command {
	var f Flags
	c := verb.New(a, "load DIR NAME FILE", "Load a table from CSV, JSON, Parquet, Arrow, or CarbonData",
		func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, args[2])
			if err != nil {
				return err
			}
			if f.dryRun {
				return dryRun(cmd.Context(), a, &f, o)
			}
			return loadTable(cmd.Context(), a, access.Writing(cmd), &f, o, args[0], args[1])
		})
	c.Flags().StringVar(&f.format, "input-format", "",
		flags.OrList(InputFormats())+" (default: from the file's name or its first bytes)")
	c.Flags().StringVar(&f.delimiter, "delimiter", ",",
		"character that separates CSV fields; \\t is a tab, the default for .tsv files")
	c.Flags().BoolVar(&f.noHeader, "no-header", false, "the CSV file has no header; its first line is a row")
	c.Flags().StringSliceVar(&f.header, "header", nil,
		"names of the CSV fields, in order, instead of those in the header")
	c.Flags().StringSliceVar(&f.columns, "columns", nil,
		"the columns to load (default: all); of CSV without --header the names of all fields, in order, as --header "+
			"gives them")
	flags.Where(c, &f.where)
	c.Flags().StringVar(&f.mode, "mode", "insert", "insert, upsert or insert_ignore")
	c.Flags().IntVar(&f.batch, "batch", 1000, "maximum number of rows per atomic batch")
	flags.CellLimit(c, &f.cellLimit)
	c.Flags().StringVar(&f.skipBad, "skip-bad", "",
		"skip invalid and duplicate rows, and write their lines to this file; - is stdout")
	c.Flags().BoolVar(&f.create, "create", false,
		"create the table, with the types of the file, or inferred from it; requires --key, except for Parquet, "+
			"Arrow, and CarbonData that table export wrote")
	c.Flags().StringSliceVar(&f.key, "key", nil,
		"with --create: the key columns; auto is a new column that numbers the rows, unless the file has a column auto")
	c.Flags().StringArrayVar(&f.types, "type", nil,
		"with --create: the type of a column, `column=type`; may be repeated; see: oribi help types")
	c.Flags().BoolVar(&f.exact, "exact", false,
		"with --create: infer only types that print every value of the text exactly as it is in the file")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --create: print the schema file and create nothing")
	f.columnarFlags.add(c)
	return c
}

var Modes = map[string]oribi.Op{"insert": oribi.OpInsert, "upsert": oribi.OpUpsert,
	"insert_ignore": oribi.OpInsertIgnore}

// options returns the options of a load that follow from the command line alone; the format is 0 if
// the command line does not determine it.
func (f *Flags) options(cmd *cobra.Command, file string) (o load.Options, err error) {
	o = load.Options{Name: file, Rows: f.batch, Scalars: f.create, Mode: Modes[f.mode]}
	o.Names = csvin.Names{List: f.header, Flag: "--header", NoHeader: f.noHeader}
	given := cmd.Flags().Changed
	if given("columns") {
		o.Columns = f.columns
	}
	if o.Delimiter, err = parseDelimiter(f.delimiter); err != nil {
		return o, exit.Usage(err)
	}
	if o.Format, err = f.formatOf(file, given); err != nil {
		return o, err
	}
	if err := f.columnarFlags.check(f.columnar, given); err != nil {
		return o, err
	}
	if o.Format == load.CSV && !given("delimiter") &&
		(f.format == "tsv" || f.format == "" && strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".tsv")) {
		o.Delimiter = '\t'
	}
	switch {
	case o.Mode == 0:
		return o, exit.Usage(fmt.Errorf("--mode: unknown mode %q%s", f.mode, nearest.Hint(f.mode, nearest.Keys(Modes))))
	case flags.CheckCellLimit(f.cellLimit) != nil:
		return o, flags.CheckCellLimit(f.cellLimit)
	case o.Rows < 1:
		return o, exit.Usage(fmt.Errorf("--batch: want at least 1, not %d", o.Rows))
	case f.create && len(f.key) == 0 && f.columnar == nil:
		return o, exit.Usage(errors.New("--create requires --key with the key columns"))
	case !f.create && given("key"):
		return o, exit.Usage(errors.New("--key is only for --create: the table already has a key"))
	case !f.create && (f.dryRun || len(f.types) > 0 || f.exact):
		return o, exit.Usage(errors.New("--type, --exact, and --dry-run are only for --create"))
	case f.create && f.noHeader && o.Columns == nil && f.header == nil:
		return o, exit.Usage(errors.New("--create: a file without a header requires --columns with the column names"))
	}
	return o, f.checkNames(given)
}

// checkNames checks the flags that name columns.
func (f *Flags) checkNames(given func(flag string) bool) error {
	for flag, names := range map[string][]string{"columns": f.columns, "header": f.header} {
		if given(flag) && len(names) == 0 {
			return exit.Usage(fmt.Errorf("--%s names no column", flag))
		}
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				return exit.Usage(fmt.Errorf("--%s: column %q appears twice", flag, name))
			}
			if err := schema.CheckName(name); err != nil {
				return exit.Usage(fmt.Errorf("--%s: %w", flag, err))
			}
		}
	}
	if f.header != nil {
		if err := within("columns", f.columns, "header", f.header); err != nil {
			return err
		}
	}
	if given("columns") {
		return within("key", slices.DeleteFunc(slices.Clone(f.key), isAuto), "columns", f.columns)
	}
	return nil
}

// isAuto reports whether a name in --key may mean the auto-incrementing column.
func isAuto(name string) bool { return name == infer.AutoKey || name == schema.AutoIncrementName }

// within returns an error for the first name of one flag that is not among the names of another.
func within(flag string, names []string, of string, all []string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return exit.Usage(fmt.Errorf("--%s: column %q is not one of --%s%s", flag, name, of, nearest.Hint(name, all)))
		}
	}
	return nil
}

// namesOf sets what depends on the format of the input, which is now known: in CSV without
// --header, --columns names the fields.
func (f *Flags) namesOf(o *load.Options) error {
	switch {
	case o.Format == load.JSONL && (f.header != nil || f.noHeader):
		return exit.Usage(errors.New("--header and --no-header are for CSV, not for JSON"))
	case o.Format == load.CSV && f.header == nil:
		o.Names.List, o.Names.Flag, o.Columns = o.Columns, "--columns", nil
	}
	return nil
}

// formatOf returns the format that the flags and the file's name determine, 0 if they do not. It
// refuses flags of other formats.
func (f *Flags) formatOf(file string, given func(flag string) bool) (load.Format, error) {
	ofCSV := ""
	for _, name := range []string{"delimiter", "no-header", "header"} {
		if given(name) {
			ofCSV = name
		}
	}
	form := load.Format(0)
	name := strings.TrimSuffix(file, ".gz")
	f.columnar = columnarFormats[f.format]
	if !given("input-format") {
		f.columnar = columnarByName(file)
	}
	switch {
	case f.columnar != nil:
		form = load.Batches
	case f.format == "csv", f.format == "tsv":
		form = load.CSV
	case f.format == "jsonl", f.format == "json":
		form = load.JSONL
	case given("input-format"):
		return 0,
			exit.Usage(fmt.Errorf("--input-format: unknown format %q: want %s%s", f.format,
				flags.OrList(InputFormats()), unreadable(f.format)))
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".json"):
		form = load.JSONL
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".tsv"), ofCSV != "":
		form = load.CSV
	}
	switch {
	case form == load.JSONL && ofCSV != "":
		return 0, exit.Usage(fmt.Errorf("--%s is for CSV, not for JSON", ofCSV))
	case form == load.Batches && ofCSV != "":
		return 0, exit.Usage(fmt.Errorf("--%s is for CSV, not for %s", ofCSV, f.columnar.name))
	case form == load.Batches && file == "-" && !f.columnar.stream:
		return 0, exit.Usage(fmt.Errorf("%s is loaded from a file, not from stdin", f.columnar.name))
	case form == load.Batches && name != file && !f.columnar.stream:
		return 0,
			exit.Usage(fmt.Errorf("%s is compressed inside, not as a .gz file: decompress %s first", f.columnar.name, file))
	}
	return form, nil
}

func parseDelimiter(word string) (byte, error) {
	if word == `\t` {
		word = "\t"
	}
	if len(word) != 1 || word[0] >= 0x80 || strings.Contains("\"\r\n\x00", word) {
		return 0, fmt.Errorf("--delimiter: want one ASCII character that is not a quote or a line end, not %q", word)
	}
	return word[0], nil
}

// loadTable runs a load and reports how many rows are in the table, also after an error.
func loadTable(
	ctx context.Context, a *console.Console, at access.Mode, f *Flags, o load.Options, dir, table string,
) error {
	in, err := Open(ctx, a, f, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	var result load.Result
	begun := false
	err = access.WithOptions(dir, at, oribi.Options{CellLimit: f.cellLimit}, func(store *oribi.Store) (err error) {
		o.Store, o.File, o.CellLimit = store, in.Whole, f.cellLimit
		if err := in.Sniff(&o); err != nil {
			return err
		}
		if err := f.namesOf(&o); err != nil {
			return err
		}
		if !f.create {
			if o.Table, err = loadTarget(store, table); err == nil && in.columnar == nil {
				err = f.checkColumns(o.Table.Schema())
			}
			if err != nil {
				return err
			}
		}
		if f.skipBad != "" {
			out, err := a.MakeOutput("skip-bad", f.skipBad, o.Name, dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, out.Close()) }()
			o.SkipBad = out
		}
		if f.create {
			if o.Table, err = createFor(ctx, a, in, f, &o, table); err != nil {
				return err
			}
		}
		if len(f.where) > 0 && in.columnar == nil {
			if o.Where, err = flags.RowFilter(o.Table.Schema(), f.where); err != nil {
				return err
			}
		}
		defer in.Bar.Stop()
		o.Progress = in.count
		begun = true
		result, err = load.Run(ctx, in, o)
		if f.create && result.Rows == 0 && (err != nil || f.whyNoRow(in, result) != "") {
			err = errors.Join(err, store.DropTable(table))
		}
		return err
	})
	in.Bar.Stop()
	if _, bad := errors.AsType[*apply.LineError](err); !begun && !bad || result.Rows < 0 {
		return err // there is nothing to report, or the number of rows is not known
	}
	report := ""
	if why := f.whyNoRow(in, result); f.create && result.Rows == 0 && err == nil && why != "" {
		report = fmt.Sprintf("table %q was not created: %s\n", table, why)
	}
	if result.Skipped > 0 {
		report += fmt.Sprintf("skipped %d rows, the first: %s\n", result.Skipped, exit.Message(result.FirstBad, exit.Failed))
	}
	report += fmt.Sprintf("loaded %d rows", result.Rows)
	if o.Mode == oribi.OpInsertIgnore {
		report += fmt.Sprintf(", %d were there", result.There)
	}
	report += "\n"
	if err == nil {
		_, err = io.WriteString(a.Stderr, report)
		return err
	}
	if in.columnar == nil || !errors.Is(err, celltext.ErrNotUTF8) { // iconv converts text only
		err = loadHint(err, result.Rows)
	}
	return exit.WithReport(err, report)
}

// whyNoRow says why no row of an input that has rows was loaded; "" if it may have none.
func (f *Flags) whyNoRow(in *Input, result load.Result) string {
	switch {
	case result.Skipped > 0:
		return "all rows were skipped"
	case len(f.where) > 0 && !in.empty:
		return "no rows match --where"
	}
	return ""
}

// checkColumns refuses columns of the flags that the table does not have.
func (f *Flags) checkColumns(s *schema.Schema) (err error) {
	if f.columns != nil {
		_, err = flags.Chosen(s, "columns", f.columns, true)
	}
	if err == nil && f.header != nil && f.columns == nil {
		_, err = flags.Chosen(s, "header", f.header, true)
	}
	return err
}

// loadTarget is the table that a load fills.
func loadTarget(store *oribi.Store, name string) (*oribi.Table, error) {
	t, err := access.OpenTable(store, name)
	if _, hinted := errors.AsType[*exit.Helped](err); errors.Is(err, oribi.ErrNoTable) && !hinted {
		err = exit.WithHelp(err, "to create the table from the file: --create --key COLUMN")
	}
	return t, err
}

func Open(ctx context.Context, a *console.Console, f *Flags, o *load.Options) (*Input, error) {
	if o.Format == load.Batches {
		return f.columnar.open(ctx, a, f, o)
	}
	name := o.Name
	in := &Input{console: a, name: name,
		Bar: a.Bar(progress.Options{What: "load", Unit: progress.Bytes, Counted: "rows"})}
	file, err := a.OpenCounted(name, in.Bar)
	if err != nil {
		in.Bar.Stop()
		return nil, err
	}
	in.file, in.Reader = file, file
	if info, err := os.Stat(name); name == "-" || err != nil || !info.Mode().IsRegular() {
		in.Reader = console.Interruptible(ctx, file)
	} else {
		in.Whole = true
	}
	return in, nil
}

func (in *Input) Close() {
	in.Bar.Stop()
	in.file.Close() // it was only read: nothing can be lost
}

// count shows how many rows have been loaded.
func (in *Input) count(rows int64) {
	if in.columnar != nil {
		in.Bar.Set(rows)
		return
	}
	in.Bar.Count(rows)
}

// Sniff looks at the first bytes of an input. It refuses binary files and, unless the command line
// gives the format, detects it: JSON begins with an object or an array.
func (in *Input) Sniff(o *load.Options) error {
	if in.columnar != nil {
		return nil
	}
	head, err := in.Head()
	if err == nil {
		err = refuseBinary(head)
	}
	if err != nil {
		return &apply.LineError{Name: o.Name, Line: 1, Err: err}
	}
	if o.Format == 0 {
		o.Format = load.CSV
		if text := TrimStart(head); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			o.Format = load.JSONL
		}
	}
	return nil
}

// Head returns the beginning of the input: through the first byte that is not blank and enough to
// recognize a binary file, or all of a shorter input.
func (in *Input) Head() ([]byte, error) {
	r := bufio.NewReader(in.Reader)
	in.Reader = r
	for n := longestSignature; ; n++ {
		head, err := r.Peek(n)
		switch {
		case len(TrimStart(head)) > 0 || err == io.EOF || n == r.Size():
			return head, nil // later reads return the error again
		case err != nil:
			return nil, err
		}
	}
}

// TrimStart removes a byte order mark and blanks from the start of a text.
func TrimStart(head []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
}

// How much is read ahead from an input that cannot be read twice.
const (
	lookAtRows  = 10_000
	lookAtBytes = 32 << 20
)

// createFor creates a table whose columns match the input.
func createFor(
	ctx context.Context, a *console.Console, in *Input, f *Flags, o *load.Options, name string,
) (*oribi.Table, error) {
	if _, err := o.Store.Table(name); err == nil {
		return nil, exit.WithHelp(fmt.Errorf("table %q: %w", name, oribi.ErrExists),
			"to load into it, omit --create and --key")
	}
	s, err := inferSchema(ctx, a, in, f, o)
	if err == nil && in.columnar == nil {
		_, err = flags.RowFilter(s, f.where) // found before there is a table
	}
	if err != nil {
		return nil, err
	}
	if err := tablecmd.CreateTable(o.Store, name, in.table(f, s)); err != nil {
		return nil, err
	}
	return o.Store.Table(name)
}

// table describes a table that is created for the input.
func (in *Input) table(f *Flags, s *schema.Schema) *schemafile.Table {
	t := &schemafile.Table{}
	if in.columnar != nil && in.columnar.exact(f) {
		*t = *in.columnar.table
	}
	t.Columns, t.Keys = s.Columns, s.Keys
	return t
}

// dryRun prints the schema of the table that createFor would create.
func dryRun(ctx context.Context, a *console.Console, f *Flags, o load.Options) error {
	in, err := Open(ctx, a, f, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.Sniff(&o); err != nil {
		return err
	}
	if err := f.namesOf(&o); err != nil {
		return err
	}
	s, err := inferSchema(ctx, a, in, f, &o)
	if err != nil {
		return loadHint(err, 0)
	}
	in.Bar.Stop()
	_, err = a.Stdout.Write(append(schemafile.AppendNew(nil, in.table(f, s)), '\n'))
	return err
}

// inferSchema infers the columns of an input and prints their types. It reads a file completely,
// but only the beginning of a stream.
func inferSchema(
	ctx context.Context, a *console.Console, in *Input, f *Flags, o *load.Options,
) (*schema.Schema, error) {
	var columns *infer.Columns
	key, err := f.key, error(nil)
	if c := in.columnar; c != nil {
		columns = infer.Known(c.columns, c.exact(f))
		key, err = c.keyColumns(f)
	} else {
		columns, err = inferText(ctx, a, in, f, o)
	}
	if err != nil {
		return nil, err
	}
	if in.empty {
		if err := f.decideAll(o.Name, columns); err != nil {
			return nil, err
		}
	}
	s, err := f.schemaOf(columns, key)
	if bad := columns.Bad; err != nil && bad != nil && (f.skipBad == "" || len(columns.Names()) == 0) {
		return nil, lineError(o.Name, bad) // what is missing may be there
	}
	if err != nil {
		return nil, exit.Usage(err)
	}
	note := ""
	if hint := csvin.DelimiterHint(columns.Names()); o.Format == load.CSV && hint != "" {
		note = "note: the file has one column" + hint + "\n"
	}
	_, err = fmt.Fprintf(a.Stderr, "types: %s\n%s", columns.Reasons(s), note)
	return s, err
}

// decideAll refuses an input without rows unless --type gives the types of all columns.
func (f *Flags) decideAll(name string, columns *infer.Columns) error {
	var missing []string
	for _, column := range columns.Names() {
		if !slices.ContainsFunc(f.types, func(text string) bool { return strings.HasPrefix(text, column+"=") }) {
			missing = append(missing, column)
		}
	}
	switch {
	case len(columns.Names()) == 0:
		return exit.WithHelp(fmt.Errorf("%s: the file has neither rows nor columns", name),
			"to create a table without a file: oribi table create DIR NAME --schema FILE")
	case len(missing) > 0:
		flags := ""
		for _, column := range missing[:min(len(missing), 3)] {
			flags += " --type '" + column + "=TYPE'"
		}
		if len(missing) > 3 {
			flags += " …"
		}
		return exit.WithHelp(fmt.Errorf("%s: the file has no rows that show the types of its columns", name),
			"to create the table without rows:"+flags)
	}
	return nil
}

// schemaOf returns the schema of the table that is created for the columns of an input.
func (f *Flags) schemaOf(columns *infer.Columns, key []string) (*schema.Schema, error) {
	for _, text := range f.types {
		name, typeName, err := flags.Pair(text)
		if err == nil {
			err = columns.Decide(name, typeName)
		}
		if err != nil {
			return nil, fmt.Errorf("--type: %w", err)
		}
	}
	if f.columnar == nil {
		for _, name := range f.columns {
			if !slices.Contains(columns.Names(), name) {
				return nil, fmt.Errorf("--columns: %w", &infer.UnknownColumnError{Name: name, Names: columns.Names()})
			}
		}
	}
	s, err := columns.Schema(key)
	if err != nil {
		return nil, fmt.Errorf("--create: %w", err)
	}
	return s, nil
}

// lineError names the input in an error that names the line.
func lineError(name string, bad *infer.FieldError) error {
	return &apply.LineError{Name: name, Line: bad.Line, Err: bad.Err}
}

// inferText infers the columns of CSV or JSON.
func inferText(ctx context.Context, a *console.Console, in *Input, f *Flags, o *load.Options) (*infer.Columns, error) {
	look := infer.Options{Exact: f.exact, Delimiter: o.Delimiter, Names: o.Names, Columns: o.Columns}
	bar := a.Bar(progress.Options{What: "look", Unit: progress.Bytes})
	defer bar.Stop()
	var from io.Reader
	var seen bytes.Buffer
	if in.Whole {
		file, err := a.OpenCounted(o.Name, bar)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	} else {
		look.Rows = lookAtRows
		from = io.TeeReader(infer.Beginning(in.Reader, lookAtBytes), &seen)
	}
	kind := infer.CSV
	if o.Format == load.JSONL {
		kind = infer.JSON
	}
	columns, err := kind(ctx, from, look)
	if err != nil {
		if bad, ok := errors.AsType[*infer.FieldError](err); ok {
			err = lineError(o.Name, bad)
		}
		return nil, err
	}
	in.Reader = io.MultiReader(&seen, in.Reader)
	in.empty = !columns.Rows
	return columns, nil
}

// unreadable ends a message about a format that load does not support.
func unreadable(format string) string {
	switch format {
	case "orc", "avro", "xlsx":
		return "; convert the file first"
	}
	return ""
}
