package cli

// examples are the commands that the help of each verb shows, one sh command each. They run in a
// directory with a store S made by "oribi demo S", a schema file, rows to apply, and a folder F
// with the table's rowsets as loose files. A test runs them there.
var examples = map[string]string{
	"oribi store init":        `oribi store init NEW --history 7d`,
	"oribi store info":        `oribi store info S`,
	"oribi store du":          `oribi store du S --files --format csv`,
	"oribi store dump":        `oribi store dump S --log | head -3`,
	"oribi store verify":      `oribi store verify S`,
	"oribi table create":      `oribi table create S parts --schema schema.json`,
	"oribi table list":        `oribi table list S --format csv`,
	"oribi table describe":    `oribi table describe S tree`,
	"oribi table drop":        `oribi table drop S tree --yes`,
	"oribi table scan":        `oribi table scan S tree --columns path,size --where "size > 100000 and path >= 'src/'" --limit 5`,
	"oribi table get":         `oribi table get S tree '{"path":"CMakeLists.txt"}'`,
	"oribi table count":       `oribi table count S tree --where "mode = '100755'"`,
	"oribi table agg":         `oribi table agg S tree --by mode --count --sum size --max path`,
	"oribi table history":     `oribi table history S tree '"CMakeLists.txt"' --format csv`,
	"oribi table diff":        `oribi table diff S tree --from -1h --to latest --format jsonl | head -3`,
	"oribi table put":         `oribi table put S tree '{"path":"new.txt","mode":"100644","blob":"0","size":1,"seq":5001}'`,
	"oribi table update":      `oribi table update S tree '{"path":"CMakeLists.txt","size":7}'`,
	"oribi table delete":      `oribi table delete S tree CMakeLists.txt`,
	"oribi table rename":      `oribi table rename S tree files`,
	"oribi table truncate":    `oribi table truncate S tree --yes`,
	"oribi table alter":       `oribi table alter S tree --add '{"name":"owner","type":"string","nullable":true}' --default size=0`,
	"oribi table flush":       `oribi table flush S tree`,
	"oribi table compact":     `oribi table compact S tree`,
	"oribi table layout":      `oribi table layout S tree --svg tree.svg --policy budgeted --budget 128MB`,
	"oribi table load":        `oribi table load S parts rows.csv --create --key id`,
	"oribi table export":      `oribi table export S tree FOLDER --format carbondata`,
	"oribi table extract":     `oribi table extract S tree LOOSE`,
	"oribi kv put":            `oribi kv put S greeting "good morning"`,
	"oribi kv get":            `oribi kv put S greeting hello && oribi kv get S greeting`,
	"oribi kv delete":         `oribi kv put S greeting hello && oribi kv delete S greeting`,
	"oribi kv scan":           `oribi kv load S pairs.csv && oribi kv scan S --prefix user/ --reverse --limit 1`,
	"oribi kv history":        `oribi kv put S greeting hello && oribi kv history S greeting`,
	"oribi kv load":           `oribi kv load S pairs.csv --bucket users`,
	"oribi kv export":         `oribi kv load S pairs.csv && oribi kv export S NEW.hfile`,
	"oribi kv buckets":        `oribi kv load S pairs.csv && oribi kv buckets S --format csv`,
	"oribi cfile info":        `oribi cfile info F/rowset-0/3.cfile --format table`,
	"oribi cfile dump":        `oribi cfile dump F/rowset-0/0.cfile | head -3`,
	"oribi cfile seek":        `oribi cfile seek F/rowset-0/0.cfile -- src/`,
	"oribi cfile blocks":      `oribi cfile blocks F/rowset-0/0.cfile --format table`,
	"oribi cfile verify":      `oribi cfile verify F/rowset-0/0.cfile`,
	"oribi cfile write":       `printf '1\n2\n3\n' | oribi cfile write --spec spec.json --values - numbers.cfile`,
	"oribi cfile advise":      `oribi cfile advise F/rowset-0/1.cfile`,
	"oribi bloom info":        `oribi bloom info F/rowset-0/bloom.bloom`,
	"oribi bloom probe":       `printf 'README' | od -An -tx1 | tr -d ' ' | oribi bloom probe F/rowset-0/bloom.bloom -`,
	"oribi delta dump":        `oribi delta dump F/rowset-0/undo-0.delta --columns '[{"id":3,"type":"INT64","nullable":false}]' | head -3`,
	"oribi hfile info":        `oribi hfile info cells.hfile --format table`,
	"oribi hfile dump":        `oribi hfile dump cells.hfile --from row2 --limit 1`,
	"oribi hfile seek":        `echo '{"row":"row2"}' | oribi hfile seek cells.hfile -`,
	"oribi hfile probe":       `echo '{"row":"row2"}' | oribi hfile probe cells.hfile -`,
	"oribi hfile verify":      `oribi hfile verify cells.hfile`,
	"oribi hfile write":       `oribi hfile write --like hbase --entries cells.jsonl --bloom ROW NEW.hfile`,
	"oribi carbondata info":   `oribi carbondata info C --format table`,
	"oribi carbondata schema": `oribi carbondata schema C`,
	"oribi carbondata dump":   `oribi carbondata dump C --columns city,n --limit 1 --format table`,
	"oribi carbondata verify": `oribi carbondata verify C`,
	"oribi carbondata write":  `oribi carbondata schema C > schema && oribi carbondata dump C | oribi carbondata write --schema schema --values - --sort-columns city NEW`,
	"oribi lab run":           `echo '{"workloads":[{"name":"zipf","operations":20000}],"policies":[{"name":"overlap"},{"name":"budgeted"}]}' | oribi lab run - NEW`,
	"oribi lab policies":      `oribi lab policies`,
	"oribi lab workloads":     `oribi lab workloads`,
	"oribi lab score":         `printf '32\ta\tm\n32\tb\tz\n' | oribi lab score - --policy budgeted --budget 128MB`,
	"oribi apply":             `oribi apply S rows.jsonl --timestamps stamps`,
	"oribi time":              `oribi time 2026-01-01`,
	"oribi demo":              `oribi demo NEW`,
	"oribi completion":        `oribi completion bash > oribi.bash`,
	"oribi version":           `oribi version`,
}

// Examples returns the examples of all verbs, by command; an entry is empty if a verb has none.
func Examples() map[string]string {
	list := map[string]string{}
	for _, verb := range leaves(new(app).commands()) {
		list[verb.CommandPath()] = examples[verb.CommandPath()]
	}
	return list
}
