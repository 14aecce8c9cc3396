#!/usr/bin/env bash
# In Apache Kudu's predicates NaN is equal to every value, and below none.
#
# Versions: kudu-binary and kudu-client 1.18.1 of Maven Central, a master and a tablet server on the
# loopback interface.
#
# A DOUBLE column has NaN, -Infinity, 1, 5, and NULL. A scan of the Java client has one predicate. A NaN in
# a row passes =, >, >=, and IN, and not < and <=; a predicate with NaN as its value passes all rows
# that are not NULL.
#
# Output seen:
#
#	d = 1: 1.0, NaN
#	d < 1: -Infinity
#	d <= 1: -Infinity, 1.0
#	d > 1: 5.0, NaN
#	d >= 1: 1.0, 5.0, NaN
#	d = NaN: -Infinity, 1.0, 5.0, NaN
#	d >= NaN: -Infinity, 1.0, 5.0, NaN
#	d in (1, 5): 1.0, 5.0, NaN
#
# Needs Linux on x86-64, a JDK, Maven, and Python 3. Exits with 1 if Kudu behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
version=1.18.1
cat > "$dir/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>nan</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kudu</groupId><artifactId>kudu-client</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
XML
(cd "$dir" && mvn -q -B dependency:copy -Dartifact="org.apache.kudu:kudu-binary:$version:jar:linux-x86_64" -DoutputDirectory="$dir" &&
	mvn -q -B dependency:copy-dependencies -DoutputDirectory="$dir/lib") >&2
python3 -m zipfile -e "$dir/kudu-binary-$version-linux-x86_64.jar" "$dir"
home=$dir/kudu-binary-$version-linux-x86_64
chmod +x "$home"/bin/*

master=127.0.0.1:$((20000 + RANDOM % 10000)) server=127.0.0.1:$((30000 + RANDOM % 10000))
start() { # role, then flags
	LD_LIBRARY_PATH=$home/lib SASL_PATH=$home/lib/sasl2 "$home/bin/kudu" "$1" run --unlock_unsafe_flags --unlock_experimental_flags \
		--time_source=system_unsync --rpc_authentication=disabled --rpc_encryption=disabled --webserver_enabled=false \
		--fs_wal_dir="$dir/$1" --log_dir="$dir" "${@:2}" > "$dir/$1.log" 2>&1 &
	pids+=($!)
}
start master --rpc_bind_addresses="$master" --default_num_replicas=1
start tserver --rpc_bind_addresses="$server" --tserver_master_addrs="$master"

cat > "$dir/Finding.java" <<'JAVA'
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;
import org.apache.kudu.client.KuduPredicate.ComparisonOp;

public final class Finding {
  static KuduClient client;
  static KuduTable table;

  public static void main(String[] args) throws Exception {
    client = new KuduClient.KuduClientBuilder(args[0]).build();
    List<ColumnSchema> columns = new ArrayList<>();
    columns.add(new ColumnSchema.ColumnSchemaBuilder("k", Type.INT32).key(true).build());
    columns.add(new ColumnSchema.ColumnSchemaBuilder("d", Type.DOUBLE).nullable(true).build());
    for (int attempt = 0; client.listTabletServers().getTabletServersCount() == 0; attempt++) {
      if (attempt == 60) throw new IllegalStateException("no tablet server");
      Thread.sleep(1000);
    }
    CreateTableOptions options = new CreateTableOptions().setRangePartitionColumns(Collections.emptyList()).setNumReplicas(1);
    table = client.createTable("t", new Schema(columns), options);
    KuduSession session = client.newSession();
    Double[] cells = {Double.NaN, Double.NEGATIVE_INFINITY, 1.0, 5.0, null};
    for (int k = 0; k < cells.length; k++) {
      Insert insert = table.newInsert();
      insert.getRow().addInt("k", k);
      if (cells[k] != null) insert.getRow().addDouble("d", cells[k]); else insert.getRow().setNull("d");
      session.apply(insert);
    }
    session.close();
    ColumnSchema d = table.getSchema().getColumn("d");
    print("d = 1", KuduPredicate.newComparisonPredicate(d, ComparisonOp.EQUAL, 1.0));
    print("d < 1", KuduPredicate.newComparisonPredicate(d, ComparisonOp.LESS, 1.0));
    print("d <= 1", KuduPredicate.newComparisonPredicate(d, ComparisonOp.LESS_EQUAL, 1.0));
    print("d > 1", KuduPredicate.newComparisonPredicate(d, ComparisonOp.GREATER, 1.0));
    print("d >= 1", KuduPredicate.newComparisonPredicate(d, ComparisonOp.GREATER_EQUAL, 1.0));
    print("d = NaN", KuduPredicate.newComparisonPredicate(d, ComparisonOp.EQUAL, Double.NaN));
    print("d >= NaN", KuduPredicate.newComparisonPredicate(d, ComparisonOp.GREATER_EQUAL, Double.NaN));
    print("d in (1, 5)", KuduPredicate.newInListPredicate(d, Arrays.asList(1.0, 5.0)));
    client.shutdown();
  }

  static void print(String text, KuduPredicate p) throws Exception {
    List<String> found = new ArrayList<>();
    KuduScanner scanner = client.newScannerBuilder(table).addPredicate(p).build();
    for (RowResult row : scanner) found.add(row.isNull("d") ? "NULL" : String.valueOf(row.getDouble("d")));
    Collections.sort(found);
    System.out.println(text + ": " + String.join(", ", found));
  }
}
JAVA
javac -cp "$dir/lib/*" -d "$dir" "$dir/Finding.java"
java -cp "$dir/lib/*:$dir" Finding "$master" | tee "$dir/output"
diff "$dir/output" - <<'OUT'
d = 1: 1.0, NaN
d < 1: -Infinity
d <= 1: -Infinity, 1.0
d > 1: 5.0, NaN
d >= 1: 1.0, 5.0, NaN
d = NaN: -Infinity, 1.0, 5.0, NaN
d >= NaN: -Infinity, 1.0, 5.0, NaN
d in (1, 5): 1.0, 5.0, NaN
OUT
