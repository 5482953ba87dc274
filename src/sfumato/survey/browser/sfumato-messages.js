/* Messages of the form in the respondent's language. The English texts are the keys; what a catalogue lacks stays English.
 *
 * A key with names in braces stands for all texts of its form, so that messages of the other modules need no keys of
 * their own: what is in their gaps is translated too.
 */

const DE = {
  "The survey cannot be reached. Try again later.": "Die Umfrage ist nicht erreichbar. Versuchen Sie es später noch einmal.",
  "The survey cannot be reached": "Die Umfrage ist nicht erreichbar",
  "The survey cannot be reached.": "Die Umfrage ist nicht erreichbar.",
  "Your answers are randomly changed in this browser before they are sent.": "Ihre Antworten werden in diesem Browser zufällig verändert, bevor sie gesendet werden.",
  "Your answers are randomly changed in this browser before they are sent, except the one to “{question}”, which is sent unchanged.": "Ihre Antworten werden in diesem Browser zufällig verändert, bevor sie gesendet werden, außer der auf „{question}“, die unverändert gesendet wird.",
  "The survey closes on {day}.": "Die Umfrage endet am {day}.",
  "This survey is closed": "Diese Umfrage ist beendet",
  "It takes no more answers.": "Sie nimmt keine Antworten mehr an.",
  "Show me what will be sent": "Zeigen, was gesendet wird",
  "Agree to the text above first, or leave this page: nothing was sent.": "Stimmen Sie zuerst dem Text oben zu, oder verlassen Sie diese Seite: Es wurde nichts gesendet.",
  "I agree": "Ich stimme zu",
  "This answer is sent unchanged.": "Diese Antwort wird unverändert gesendet.",
  "Only your other answers are randomly changed.": "Nur Ihre anderen Antworten werden zufällig verändert.",
  "Give each option a rank of its own, 1 for the first.": "Geben Sie jeder Möglichkeit einen eigenen Rang, 1 für die erste.",
  "Some questions are not answered.": "Einige Fragen sind nicht beantwortet.",
  "The privacy level was chosen before the random changes were drawn, and stays.": "Die Stufe wurde gewählt, bevor die zufälligen Veränderungen gezogen wurden, und bleibt.",
  "How much may the survey learn about you?": "Wie viel darf die Umfrage über Sie erfahren?",
  "More privacy to the left, more accurate results to the right": "Nach links mehr Schutz, nach rechts genauere Ergebnisse",
  "More privacy at the start, more accurate results at the end": "Am Anfang mehr Schutz, am Ende genauere Ergebnisse",
  "You chose this before the random changes were drawn, so it stays:": "Das haben Sie gewählt, bevor die zufälligen Veränderungen gezogen wurden; es bleibt so:",
  "{level}, {protection}: {probabilities}. What is sent changes the odds of a guess about one answer at most {odds}-fold (ε is {epsilon} per question, {total} in total).": "{level}, {protection}: {probabilities}. Was gesendet wird, ändert die Wettchance, eine Antwort zu erraten, höchstens um das {odds}-Fache (ε ist {epsilon} je Frage, {total} insgesamt).",
  "strong protection": "starker Schutz", "good protection": "guter Schutz", "moderate protection": "mäßiger Schutz", "weak protection": "schwacher Schutz",
  "your true answer is sent with a probability of {share}, otherwise a random one": "Ihre wahre Antwort wird mit einer Wahrscheinlichkeit von {share} gesendet, sonst eine zufällige",
  "{least} to {most}": "{least} bis {most}",
  "{count}: the survey may use at most one combination of your answers, up to {bits} bits of information, besides your answer to “{question}”.": "{count}: Die Umfrage darf höchstens eine Kombination Ihrer Antworten verwenden, bis zu {bits} Bit Information, neben Ihrer Antwort auf „{question}“.",
  "{count}: the survey may use at most {count} combinations of your answers, up to {bits} bits of information, besides your answer to “{question}”.": "{count}: Die Umfrage darf höchstens {count} Kombinationen Ihrer Antworten verwenden, bis zu {bits} Bit Information, neben Ihrer Antwort auf „{question}“.",
  "If the survey asks for more, send only what I allow": "Wenn die Umfrage mehr verlangt, nur senden, was ich erlaube",
  "If it asks for more now, keep my answers encrypted on this device, and send them when it asks for less": "Wenn sie jetzt mehr verlangt, meine Antworten verschlüsselt auf diesem Gerät behalten und senden, sobald sie weniger verlangt",
  "Help the survey to start: send my true answers, NOT randomly changed": "Der Umfrage beim Start helfen: meine wahren Antworten senden, NICHT zufällig verändert",
  "The worst case: if all your answers followed from one fact about you, which is true of every second person, somebody who sees what is sent could be {share} sure of it, instead of {half}.": "Der schlimmste Fall: Folgten alle Ihre Antworten aus einer einzigen Tatsache über Sie, die auf jeden Zweiten zutrifft, so könnte jemand, der das Gesendete sieht, sich ihrer zu {share} sicher sein, statt zu {half}.",
  "Against that, this level protects nothing; it protects single answers.": "Davor schützt diese Stufe nicht; sie schützt einzelne Antworten.",
  "over {share}": "über {share}",
  "What can be learned from your answers": "Was man aus Ihren Antworten erfahren kann",
  "At most {bits} bits of your {total} bits of information about these questions can be learned, whatever else is known about you.": "Höchstens {bits} Ihrer {total} Bit Information über diese Fragen kann man erfahren, was auch immer sonst über Sie bekannt ist.",
  "Your answer to “{question}” is sent unchanged.": "Ihre Antwort auf „{question}“ wird unverändert gesendet.",
  "This is sent from your device, and nothing else": "Das wird von Ihrem Gerät gesendet, und sonst nichts",
  "The random numbers were drawn once: every attempt sends the same, and other answers are changed by the same numbers, so that repetition reveals nothing more. Fingerprint of this survey: {fingerprint}. Everybody who is asked in the same way sees the same fingerprint.": "Die Zufallszahlen wurden einmal gezogen: Jeder Versuch sendet dasselbe, und andere Antworten werden mit denselben Zahlen verändert, sodass Wiederholung nicht mehr verrät. Fingerabdruck dieser Umfrage: {fingerprint}. Wer genauso gefragt wird, sieht denselben Fingerabdruck.",
  "Send this": "Das senden", "Try again": "Noch einmal versuchen", "Change my answers": "Antworten ändern",
  "“{answer}” is sent; it is your true answer with a probability of {share} (a blind guess: {guess})": "„{answer}“ wird gesendet; mit einer Wahrscheinlichkeit von {share} ist es Ihre wahre Antwort (blind geraten: {guess})",
  "“{answer}” is sent unchanged": "„{answer}“ wird unverändert gesendet",
  "at most {share} of it can be learned, whatever you answered": "höchstens {share} davon kann man erfahren, was auch immer Sie geantwortet haben",
  "yes": "ja", "no": "nein",
  "below {end}": "unter {end}", "{end} or more": "{end} oder mehr", "{end} or more {unit}": "{end} {unit} oder mehr",
  "before {day}": "vor dem {day}", "from {low}, before {high}": "ab dem {low}, vor dem {high}", "from {day}": "ab dem {day}",
  "Nothing was sent: this survey asks for too much": "Nichts wurde gesendet: Diese Umfrage verlangt zu viel",
  "The randomly changed version was not sent: this survey asks for too much": "Die zufällig veränderte Fassung wurde nicht gesendet: Diese Umfrage verlangt zu viel",
  "Nothing was sent yet": "Noch wurde nichts gesendet",
  "The randomly changed version was not sent yet": "Die zufällig veränderte Fassung wurde noch nicht gesendet",
  "Your answers are stored encrypted on this device until {moment}, then deleted.": "Ihre Antworten liegen bis {moment} verschlüsselt auf diesem Gerät und werden dann gelöscht.",
  "You can close this page; open it again later to let them be sent.": "Sie können diese Seite schließen; öffnen Sie sie später wieder, damit sie gesendet werden.",
  "Check again": "Noch einmal prüfen", "Delete my answers": "Meine Antworten löschen",
  "Sent. Thank you": "Gesendet. Vielen Dank", "It had arrived before, and counts once.": "Die Antwort war schon angekommen und zählt einmal.",
  "Sent, but not accepted": "Gesendet, aber nicht angenommen", "The survey refused what was sent.": "Die Umfrage hat abgelehnt, was gesendet wurde.",
  "Sent, but not confirmed": "Gesendet, aber nicht bestätigt", "The survey ended or changed before it confirmed what was sent, which may or may not count.": "Die Umfrage endete oder änderte sich, bevor sie bestätigte, was gesendet wurde; es zählt vielleicht, vielleicht nicht.",
  "Your answers were deleted, not sent": "Ihre Antworten wurden gelöscht, nicht gesendet", "The survey ended before they could be sent.": "Die Umfrage endete, bevor sie gesendet werden konnten.",
  "Your unchanged answers left this device, as you chose.": "Ihre unveränderten Antworten haben dieses Gerät verlassen, wie Sie es gewählt haben.",
  "Only the randomly changed version left this device.": "Nur die zufällig veränderte Fassung hat dieses Gerät verlassen.",
  "Only the randomly changed version and, unchanged, your answer to “{question}” left this device.": "Nur die zufällig veränderte Fassung und, unverändert, Ihre Antwort auf „{question}“ haben dieses Gerät verlassen.",
  "Your answers were deleted here, and no other version will be sent.": "Ihre Antworten wurden hier gelöscht, und keine andere Fassung wird gesendet.",
  "Check that my answer was counted": "Prüfen, ob meine Antwort gezählt wurde",
  "Your receipt is {receipt}. When it has closed, the survey publishes the receipts of all answers that it counted; they tell nothing about the answers, and your browser reads all of them, so that nobody learns which is yours.": "Ihre Quittung ist {receipt}. Wenn die Umfrage beendet ist, veröffentlicht sie die Quittungen aller Antworten, die sie gezählt hat; sie sagen nichts über die Antworten, und Ihr Browser liest alle, sodass niemand erfährt, welche die Ihre ist.",
  "Your receipt is among the {count} that were counted.": "Ihre Quittung ist unter den {count}, die gezählt wurden.",
  "Your receipt is NOT among the {count} that were counted. Ask those who run the survey, and show them your receipt.": "Ihre Quittung ist NICHT unter den {count}, die gezählt wurden. Fragen Sie die Betreiber der Umfrage und zeigen Sie Ihre Quittung.",
  "Open this page again then.": "Öffnen Sie diese Seite dann wieder.",
  "The receipts cannot be read now.": "Die Quittungen können gerade nicht gelesen werden.",
  "This was a preview": "Das war eine Vorschau", "Nothing was sent, and nothing was stored.": "Nichts wurde gesendet, und nichts wurde gespeichert.",
  "The survey is not ready yet: it still needs its first answers.": "Die Umfrage ist noch nicht so weit: Ihr fehlen noch die ersten Antworten.",
  "Your browser refused what the survey asks for: {reason}.": "Ihr Browser hat abgelehnt, was die Umfrage verlangt: {reason}.",
  "The survey cannot be reached, or you are offline. {rest}": "Die Umfrage ist nicht erreichbar, oder Sie sind offline. {rest}",
  "The survey did not confirm your answer (status {status}). {rest}": "Die Umfrage hat Ihre Antwort nicht bestätigt (Status {status}). {rest}",
  "The same row will be sent again, and never another one.": "Es wird dieselbe Zeile noch einmal gesendet, nie eine andere.",
  "Your answer is on its way, and can no longer be changed.": "Ihre Antwort ist unterwegs und kann nicht mehr geändert werden.",
  "You have already answered this survey, and it takes one answer per person.": "Sie haben diese Umfrage schon beantwortet; sie nimmt eine Antwort je Person an.",
  "Your answer was sent and refused, and this browser sends no other.": "Ihre Antwort wurde gesendet und abgelehnt; dieser Browser sendet keine andere.",
  "Your answer was sent, and this browser sends no other.": "Ihre Antwort wurde gesendet; dieser Browser sendet keine andere.",
  "Enough people of your group have answered: yours counts if it came before, and was not stored else.": "Aus Ihrer Gruppe haben genug Menschen geantwortet: Ihre Antwort zählt, wenn sie vorher ankam, und wurde sonst nicht gespeichert.",
  "Your answers to this survey were deleted, and it takes no others.": "Ihre Antworten auf diese Umfrage wurden gelöscht, und sie nimmt keine anderen an.",
};

const AR = {
  "The survey cannot be reached. Try again later.": "تعذّر الوصول إلى الاستبيان. حاول مرة أخرى لاحقًا.",
  "The survey cannot be reached": "تعذّر الوصول إلى الاستبيان",
  "The survey cannot be reached.": "تعذّر الوصول إلى الاستبيان.",
  "Your answers are randomly changed in this browser before they are sent.": "تُغيَّر إجاباتك عشوائيًا في هذا المتصفح قبل إرسالها.",
  "Your answers are randomly changed in this browser before they are sent, except the one to “{question}”, which is sent unchanged.": "تُغيَّر إجاباتك عشوائيًا في هذا المتصفح قبل إرسالها، ما عدا إجابة «{question}» التي تُرسل دون تغيير.",
  "The survey closes on {day}.": "يُغلق الاستبيان في {day}.",
  "This survey is closed": "هذا الاستبيان مغلق",
  "It takes no more answers.": "لم يعد يقبل إجابات.",
  "Show me what will be sent": "أرني ما سيُرسل",
  "Agree to the text above first, or leave this page: nothing was sent.": "وافق أولًا على النص أعلاه، أو غادر هذه الصفحة: لم يُرسل شيء.",
  "I agree": "أوافق",
  "This answer is sent unchanged.": "تُرسل هذه الإجابة دون تغيير.",
  "Only your other answers are randomly changed.": "إجاباتك الأخرى فقط تُغيَّر عشوائيًا.",
  "Give each option a rank of its own, 1 for the first.": "أعطِ كل خيار رتبة خاصة به، 1 للأول.",
  "Some questions are not answered.": "بعض الأسئلة بلا إجابة.",
  "The privacy level was chosen before the random changes were drawn, and stays.": "اختير مستوى الخصوصية قبل سحب التغييرات العشوائية، ويبقى كما هو.",
  "How much may the survey learn about you?": "كم يُسمح للاستبيان أن يعرف عنك؟",
  "More privacy to the left, more accurate results to the right": "خصوصية أكثر إلى اليسار، ونتائج أدق إلى اليمين",
  "More privacy at the start, more accurate results at the end": "خصوصية أكثر في البداية، ونتائج أدق في النهاية",
  "You chose this before the random changes were drawn, so it stays:": "اخترت هذا قبل سحب التغييرات العشوائية، فيبقى كما هو:",
  "{level}, {protection}: {probabilities}. What is sent changes the odds of a guess about one answer at most {odds}-fold (ε is {epsilon} per question, {total} in total).": "{level}، {protection}: {probabilities}. ما يُرسل يغيّر أرجحية تخمين إجابة واحدة {odds} مرة على الأكثر (‏ε تساوي {epsilon} لكل سؤال و{total} في المجموع).",
  "strong protection": "حماية قوية", "good protection": "حماية جيدة", "moderate protection": "حماية متوسطة", "weak protection": "حماية ضعيفة",
  "your true answer is sent with a probability of {share}, otherwise a random one": "تُرسل إجابتك الحقيقية باحتمال {share}، وإلا فإجابة عشوائية",
  "{least} to {most}": "من {least} إلى {most}",
  "{count}: the survey may use at most one combination of your answers, up to {bits} bits of information, besides your answer to “{question}”.": "{count}: يجوز للاستبيان استخدام تركيبة واحدة من إجاباتك على الأكثر، حتى {bits} بت من المعلومات، إضافة إلى إجابتك عن «{question}».",
  "{count}: the survey may use at most {count} combinations of your answers, up to {bits} bits of information, besides your answer to “{question}”.": "{count}: يجوز للاستبيان استخدام {count} من تركيبات إجاباتك على الأكثر، حتى {bits} بت من المعلومات، إضافة إلى إجابتك عن «{question}».",
  "If the survey asks for more, send only what I allow": "إذا طلب الاستبيان المزيد، فأرسل ما أسمح به فقط",
  "If it asks for more now, keep my answers encrypted on this device, and send them when it asks for less": "إذا طلب المزيد الآن، فاحفظ إجاباتي مشفّرة على هذا الجهاز، وأرسلها حين يطلب أقل",
  "Help the survey to start: send my true answers, NOT randomly changed": "ساعد الاستبيان على البدء: أرسل إجاباتي الحقيقية دون تغيير عشوائي",
  "The worst case: if all your answers followed from one fact about you, which is true of every second person, somebody who sees what is sent could be {share} sure of it, instead of {half}.": "أسوأ حالة: لو نتجت كل إجاباتك عن حقيقة واحدة عنك تنطبق على شخص من كل اثنين، لأمكن لمن يرى ما يُرسل أن يتيقن منها بنسبة {share} بدلًا من {half}.",
  "Against that, this level protects nothing; it protects single answers.": "لا يحمي هذا المستوى من ذلك شيئًا؛ إنه يحمي الإجابات المفردة.",
  "over {share}": "أكثر من {share}",
  "What can be learned from your answers": "ما الذي يمكن معرفته من إجاباتك",
  "At most {bits} bits of your {total} bits of information about these questions can be learned, whatever else is known about you.": "يمكن معرفة {bits} بت على الأكثر من أصل {total} بت من معلوماتك عن هذه الأسئلة، مهما عُرف عنك غير ذلك.",
  "Your answer to “{question}” is sent unchanged.": "تُرسل إجابتك عن «{question}» دون تغيير.",
  "This is sent from your device, and nothing else": "هذا ما يُرسل من جهازك، ولا شيء غيره",
  "The random numbers were drawn once: every attempt sends the same, and other answers are changed by the same numbers, so that repetition reveals nothing more. Fingerprint of this survey: {fingerprint}. Everybody who is asked in the same way sees the same fingerprint.": "سُحبت الأرقام العشوائية مرة واحدة: كل محاولة ترسل الشيء نفسه، والإجابات الأخرى تُغيَّر بالأرقام نفسها، فلا يكشف التكرار أكثر. بصمة هذا الاستبيان: {fingerprint}. كل من يُسأل بالطريقة نفسها يرى البصمة نفسها.",
  "Send this": "أرسل هذا", "Try again": "حاول مرة أخرى", "Change my answers": "غيّر إجاباتي",
  "“{answer}” is sent; it is your true answer with a probability of {share} (a blind guess: {guess})": "تُرسل «{answer}»؛ وهي إجابتك الحقيقية باحتمال {share} (التخمين الأعمى: {guess})",
  "“{answer}” is sent unchanged": "تُرسل «{answer}» دون تغيير",
  "at most {share} of it can be learned, whatever you answered": "يمكن معرفة {share} منها على الأكثر، مهما أجبت",
  "yes": "نعم", "no": "لا",
  "below {end}": "أقل من {end}", "{end} or more": "{end} أو أكثر", "{end} or more {unit}": "{end} {unit} أو أكثر",
  "before {day}": "قبل {day}", "from {low}, before {high}": "من {low} وقبل {high}", "from {day}": "من {day}",
  "Nothing was sent: this survey asks for too much": "لم يُرسل شيء: هذا الاستبيان يطلب أكثر مما ينبغي",
  "The randomly changed version was not sent: this survey asks for too much": "لم تُرسل النسخة المغيّرة عشوائيًا: هذا الاستبيان يطلب أكثر مما ينبغي",
  "Nothing was sent yet": "لم يُرسل شيء بعد",
  "The randomly changed version was not sent yet": "لم تُرسل النسخة المغيّرة عشوائيًا بعد",
  "Your answers are stored encrypted on this device until {moment}, then deleted.": "تُحفظ إجاباتك مشفّرة على هذا الجهاز حتى {moment} ثم تُحذف.",
  "You can close this page; open it again later to let them be sent.": "يمكنك إغلاق هذه الصفحة؛ افتحها لاحقًا لتُرسل.",
  "Check again": "تحقق مرة أخرى", "Delete my answers": "احذف إجاباتي",
  "Sent. Thank you": "أُرسلت. شكرًا لك", "It had arrived before, and counts once.": "كانت قد وصلت من قبل، وتُحسب مرة واحدة.",
  "Sent, but not accepted": "أُرسلت ولم تُقبل", "The survey refused what was sent.": "رفض الاستبيان ما أُرسل.",
  "Sent, but not confirmed": "أُرسلت ولم تُؤكَّد", "The survey ended or changed before it confirmed what was sent, which may or may not count.": "انتهى الاستبيان أو تغيّر قبل أن يؤكّد ما أُرسل؛ قد يُحسب وقد لا يُحسب.",
  "Your answers were deleted, not sent": "حُذفت إجاباتك ولم تُرسل", "The survey ended before they could be sent.": "انتهى الاستبيان قبل أن يمكن إرسالها.",
  "Your unchanged answers left this device, as you chose.": "غادرت إجاباتك غير المغيّرة هذا الجهاز، كما اخترت.",
  "Only the randomly changed version left this device.": "غادرت هذا الجهاز النسخة المغيّرة عشوائيًا فقط.",
  "Only the randomly changed version and, unchanged, your answer to “{question}” left this device.": "غادرت هذا الجهاز النسخة المغيّرة عشوائيًا فقط، ومعها دون تغيير إجابتك عن «{question}».",
  "Your answers were deleted here, and no other version will be sent.": "حُذفت إجاباتك هنا، ولن تُرسل نسخة أخرى.",
  "Check that my answer was counted": "تحقق من أن إجابتي حُسبت",
  "Your receipt is {receipt}. When it has closed, the survey publishes the receipts of all answers that it counted; they tell nothing about the answers, and your browser reads all of them, so that nobody learns which is yours.": "إيصالك هو {receipt}. عند إغلاقه ينشر الاستبيان إيصالات كل الإجابات التي حسبها؛ وهي لا تقول شيئًا عن الإجابات، ويقرأها متصفحك كلها، فلا يعرف أحد أيها لك.",
  "Your receipt is among the {count} that were counted.": "إيصالك من بين {count} إيصالات حُسبت.",
  "Your receipt is NOT among the {count} that were counted. Ask those who run the survey, and show them your receipt.": "إيصالك ليس من بين {count} إيصالات حُسبت. اسأل القائمين على الاستبيان وأرهم إيصالك.",
  "Open this page again then.": "افتح هذه الصفحة حينها مرة أخرى.",
  "The receipts cannot be read now.": "تتعذّر قراءة الإيصالات الآن.",
  "This was a preview": "كانت هذه معاينة", "Nothing was sent, and nothing was stored.": "لم يُرسل شيء ولم يُحفظ شيء.",
  "The survey is not ready yet: it still needs its first answers.": "الاستبيان غير جاهز بعد: ما زال يحتاج إلى إجاباته الأولى.",
  "Your browser refused what the survey asks for: {reason}.": "رفض متصفحك ما يطلبه الاستبيان: {reason}.",
  "The survey cannot be reached, or you are offline. {rest}": "تعذّر الوصول إلى الاستبيان، أو أنك غير متصل. {rest}",
  "The survey did not confirm your answer (status {status}). {rest}": "لم يؤكّد الاستبيان إجابتك (الحالة {status}). {rest}",
  "The same row will be sent again, and never another one.": "سيُرسل السطر نفسه مرة أخرى، ولن يُرسل غيره أبدًا.",
  "Your answer is on its way, and can no longer be changed.": "إجابتك في الطريق ولا يمكن تغييرها بعد الآن.",
  "You have already answered this survey, and it takes one answer per person.": "لقد أجبت عن هذا الاستبيان من قبل، وهو يقبل إجابة واحدة لكل شخص.",
  "Your answer was sent and refused, and this browser sends no other.": "أُرسلت إجابتك ورُفضت، ولا يرسل هذا المتصفح غيرها.",
  "Your answer was sent, and this browser sends no other.": "أُرسلت إجابتك، ولا يرسل هذا المتصفح غيرها.",
  "Enough people of your group have answered: yours counts if it came before, and was not stored else.": "أجاب عدد كافٍ من مجموعتك: تُحسب إجابتك إن وصلت قبل ذلك، وإلا فلم تُحفظ.",
  "Your answers to this survey were deleted, and it takes no others.": "حُذفت إجاباتك عن هذا الاستبيان، وهو لا يقبل غيرها.",
};

/** The catalogues, by the tags of their languages. */
export const CATALOGUES = { en: {}, de: DE, ar: AR };

const RIGHT_TO_LEFT = ["ar", "fa", "he", "ur"];

/** The catalogue for a tag such as `de-AT`: English where there is none. */
export const languageOf = (tag) => [tag.toLowerCase(), tag.toLowerCase().split("-")[0]].find((one) => Object.hasOwn(CATALOGUES, one)) ?? "en";

/** The direction in which a language is written. */
export const directionOf = (tag) => (RIGHT_TO_LEFT.includes(tag.split("-")[0]) ? "rtl" : "ltr");

const LEAST_FORM = 20; // letters of a key besides its gaps: shorter ones would be found in other texts

const fill = (template, values) => template.replace(/\{(\w+)\}/g, (gap, name) => values[name] ?? gap);

/** Translates texts into a language; a text with gaps is given its values, one without may be of the form of a key. */
export function translator(tag) {
  const catalogue = CATALOGUES[languageOf(tag)];
  const isForm = (key) => key.includes("{") && key.replace(/\{\w+\}/g, "").length >= LEAST_FORM;
  const forms = Object.keys(catalogue).filter(isForm).map((key) => {
    const names = Array.from(key.matchAll(/\{(\w+)\}/g), ([, name]) => name);
    const parts = key.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return { key, names, form: new RegExp(`^${parts.join("([^]+?)")}$`) };
  });
  return function translate(text, values) {
    const known = Object.hasOwn(catalogue, text) ? catalogue[text] : undefined;
    if (values) return fill(known ?? text, values);
    if (known) return known;
    for (const { key, names, form } of forms) {
      const found = form.exec(text);
      if (found) return fill(catalogue[key], Object.fromEntries(names.map((name, i) => [name, translate(found[i + 1])])));
    }
    return text;
  };
}
