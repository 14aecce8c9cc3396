#!/usr/bin/env bash
# CarbonData's SDK has the calendar of java.util.GregorianCalendar: dates before 1582-10-15 are Julian.
#
# Versions: carbondata-sdk 2.3.0 of Maven Central, OpenJDK 17.
#
# The SDK accepts a February 29 that only the Julian calendar has, and the ten days that were left
# out in 1582 become NULL. A date is stored as a number of days: who takes it for that of the
# Gregorian calendar, as it is in Parquet and Arrow, reads other dates before 1582.
#
# Output seen, what was written and what is read:
#
#	1500-02-29  1500-02-29
#	1500-03-01  1500-03-01
#	1582-10-04  1582-10-04
#	1582-10-05  null
#	1582-10-14  null
#	1582-10-15  1582-10-15
#	1700-02-29  null
#
# Needs Java 8 or later, and Maven. Exits with 1 if the SDK behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/src/main/java"
cat > "$dir/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>dates</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.apache.carbondata</groupId><artifactId>carbondata-sdk</artifactId><version>2.3.0</version>
      <exclusions>
        <exclusion><groupId>org.apache.arrow</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.apache.hive</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.apache.parquet</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId></exclusion>
        <exclusion><groupId>com.amazonaws</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
  </dependencies>
</project>
XML
cat > "$dir/src/main/java/Finding.java" <<'JAVA'
import org.apache.carbondata.core.constants.CarbonCommonConstants;
import org.apache.carbondata.core.metadata.datatype.DataTypes;
import org.apache.carbondata.core.metadata.datatype.Field;
import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.carbondata.sdk.file.CarbonReader;
import org.apache.carbondata.sdk.file.CarbonWriter;
import org.apache.carbondata.sdk.file.Schema;

public final class Finding {
  public static void main(String[] args) throws Exception {
    CarbonProperties.getInstance().addProperty(CarbonCommonConstants.CARBON_DATE_FORMAT, "yyyy-MM-dd");
    String[] dates = {"1500-02-29", "1500-03-01", "1582-10-04", "1582-10-05", "1582-10-14", "1582-10-15", "1700-02-29"};
    Field[] fields = {new Field("id", DataTypes.INT), new Field("d", DataTypes.DATE)};
    CarbonWriter w = CarbonWriter.builder().outputPath(args[0]).withCsvInput(new Schema(fields)).writtenBy("finding")
        .withLoadOption("bad_records_action", "force").build();
    for (int i = 0; i < dates.length; i++) {
      w.write(new String[] {Integer.toString(i), dates[i]});
    }
    w.close();
    CarbonReader<Object> r = CarbonReader.builder(args[0], "_temp").projection(new String[] {"id", "d"}).build();
    while (r.hasNext()) {
      Object[] row = (Object[]) r.readNextRow();
      System.out.println("row " + dates[(Integer) row[0]] + "  " + row[1]);
    }
    r.close();
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
JAVA
cd "$dir"
mvn -q -B -Dmaven.repo.local="$dir/m2" compile dependency:build-classpath -Dmdep.outputFile=classpath >maven.log 2>&1 || { cat maven.log; exit 2; }
opens="--add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED"
java -version 2>&1 | grep -q '"1\.8' && opens=""
got=$(TZ=UTC java $opens -cp "target/classes:$(cat classpath)" Finding "$dir/out" 2>java.log | sed -n 's/^row //p') || { cat java.log; exit 2; }
want="1500-02-29  1500-02-29
1500-03-01  1500-03-01
1582-10-04  1582-10-04
1582-10-05  null
1582-10-14  null
1582-10-15  1582-10-15
1700-02-29  null"
echo "$got"
[ "$got" = "$want" ]
